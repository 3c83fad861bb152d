use super::*;
use crate::args::{ExperimentArgs, Scale};
use kit::Scratch;
use larch::Database;
use suite::stop::Stop;

fn opened(scratch: &Scratch) -> Ground {
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: false, price: None };
    Ground::with_stop("test", &args, 1 << 20, Stop::never()).expect("there is room")
}

fn fill(place: &Path) -> larch::Result<()> {
    let db = Database::open(place)?;
    let table = db.table("t")?;
    table.insert(b"a", b"1")?;
    db.flush()?;
    table.insert(b"b", b"2")?;
    drop(table);
    db.close()
}

fn make(place: &Path) -> Result<bool, Failure> {
    fill(place).expect("the disk works");
    Ok(true)
}

#[test]
fn what_a_copy_writes_does_not_reach_the_database_or_the_next_copy() {
    let scratch = Scratch::new("made");
    let ground = opened(&scratch);
    let made = Made::open(&ground, "db", make).expect("there is room").expect("it is complete");
    let file_bytes = made.file_bytes().expect("it can be read");
    assert!(!file_bytes.is_empty());
    for _ in 0..2 {
        let copy = made.copy().expect("there is room");
        let db = Database::open(copy.place()).expect("it is a database");
        let table = db.table("t").expect("it is there");
        assert_eq!(table.get(b"a").expect("the disk works").as_deref(), Some(&b"1"[..]));
        assert_eq!(table.get(b"b").expect("the disk works").as_deref(), Some(&b"2"[..]));
        table.insert(b"a", b"other").expect("the disk works");
        table.compact().expect("the disk works");
        drop(table);
        db.close().expect("the disk works");
    }
    assert_eq!(made.file_bytes().expect("it can be read"), file_bytes);
    let names: Vec<_> = fs::read_dir(ground.data("").expect("there is room")).expect("it is there").collect();
    assert_eq!(names.len(), 2, "the database and its mark are left: {names:?}");
}

#[test]
fn one_that_was_not_finished_is_made_again() {
    let scratch = Scratch::new("made");
    let ground = opened(&scratch);
    let given_up = Made::open(&ground, "db", |place| {
        fs::create_dir(place).expect("there is room");
        Ok(false)
    });
    assert!(given_up.expect("there is room").is_none());
    assert!(!ground.data("db.complete").expect("there is room").exists());
    assert!(Made::open(&ground, "db", make).expect("there is room").is_some());
    assert!(Made::open(&ground, "db", |_| panic!("it is complete")).expect("there is room").is_some());
}
