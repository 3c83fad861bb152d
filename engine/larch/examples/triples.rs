//! A triple store. A fact has a subject, a predicate and an object, and is stored in three orders. A question
//! gives some names of a fact and leaves the others open. The facts that answer it are always one range of keys in
//! one of the orders.

use larch::{Batch, Database, Result, Snapshot, Table};

/// The facts, in three orders.
struct Triples {
    db: Database,
    by_subject: Table,
    by_predicate: Table,
    by_object: Table,
}

type Fact = [String; 3];

/// Joins the names. Each name ends with a byte that occurs in no name.
fn key(names: &[&str]) -> Vec<u8> {
    names.iter().flat_map(|name| [name.as_bytes(), &[0]].concat()).collect()
}

/// Splits a key into its three names, and rotates them by `turned` places.
fn fact(key: &[u8], turned: usize) -> Fact {
    let mut names: Vec<String> =
        key.split(|byte| *byte == 0).take(3).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    names.rotate_right(turned);
    names.try_into().expect("a key has three names")
}

impl Triples {
    fn open(db: Database) -> Result<Self> {
        let (by_subject, by_predicate, by_object) = (db.table("spo")?, db.table("pos")?, db.table("osp")?);
        Ok(Self { db, by_subject, by_predicate, by_object })
    }

    /// Adds a fact to the batch.
    fn add(&self, batch: &mut Batch, [subject, predicate, object]: [&str; 3]) {
        batch.insert(&self.by_subject, key(&[subject, predicate, object]), "");
        batch.insert(&self.by_predicate, key(&[predicate, object, subject]), "");
        batch.insert(&self.by_object, key(&[object, subject, predicate]), "");
    }

    /// The facts at the moment `moment` that have the names which are given. A name that is `None` may be any
    /// name.
    fn find(&self, moment: &Snapshot, [subject, predicate, object]: [Option<&str>; 3]) -> Result<Vec<Fact>> {
        // Chooses the table in whose keys the given names come first.
        let (table, names, turned) = match (subject, predicate, object) {
            (Some(_), _, None) | (None, None, None) => (&self.by_subject, [subject, predicate, None], 0),
            (None, Some(_), _) => (&self.by_predicate, [predicate, object, None], 1),
            (_, _, Some(_)) => (&self.by_object, [object, subject, predicate], 2),
        };
        let prefix = key(&names.into_iter().map_while(|name| name).collect::<Vec<_>>());
        let rows = table.at(moment)?;
        rows.prefix(prefix).map(|row| Ok(fact(&row?.0, turned))).collect()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let triples = Triples::open(Database::open(&directory)?)?;

    let mut batch = triples.db.batch();
    for fact in [
        ["ada", "wrote", "notes"],
        ["ada", "knew", "charles"],
        ["charles", "built", "engine"],
        ["charles", "knew", "ada"],
        ["mary", "knew", "ada"],
        ["notes", "describe", "engine"],
    ] {
        triples.add(&mut batch, fact);
    }
    batch.commit()?;

    let now = triples.db.snapshot();
    let ada = triples.find(&now, [Some("ada"), None, None])?;
    println!("of ada: {ada:?}");
    assert_eq!(ada, [["ada", "knew", "charles"], ["ada", "wrote", "notes"]]);
    let who = triples.find(&now, [None, Some("knew"), Some("ada")])?;
    println!("who knew ada: {who:?}");
    assert_eq!(who, [["charles", "knew", "ada"], ["mary", "knew", "ada"]]);
    assert_eq!(triples.find(&now, [None, None, Some("engine")])?.len(), 2);
    assert_eq!(triples.find(&now, [Some("mary"), None, Some("ada")])?, [["mary", "knew", "ada"]]);
    assert_eq!(triples.find(&now, [Some("mary"), Some("knew"), Some("ada")])?.len(), 1);
    assert_eq!(triples.find(&now, [None; 3])?.len(), 6);

    // The snapshot does not see this later commit.
    let mut batch = triples.db.batch();
    triples.add(&mut batch, ["mary", "wrote", "sciences"]);
    batch.commit()?;
    assert_eq!(triples.find(&now, [None; 3])?.len(), 6);
    assert_eq!(triples.find(&triples.db.snapshot(), [None, Some("wrote"), None])?.len(), 2);
    Ok(())
}
