//! Tests of tables that give times to their rows: every way of writing gives them, and the option goes with the table.

use super::*;
use crate::MergeOp;
use crate::base::error::{Error, Result as Outcome};
use crate::bulk::IngestOptions;
use crate::options::{Expiry, ExpiryTime, Release};
use crate::transaction::TransactionOptions;

/// A declaration: a value begins with the milliseconds since 1970, then a colon. A value that begins with a colon has
/// no time.
const HEAD: &[u8] = b"head";

/// The time that [`HEAD`] says.
fn head(_: &[u8], value: &[u8]) -> Result<Option<Duration>, String> {
    let end = value.iter().position(|byte| *byte == b':').ok_or("it has no colon")?;
    let millis = std::str::from_utf8(&value[..end]).map_err(|bad| bad.to_string())?;
    if millis.is_empty() {
        return Ok(None);
    }
    Ok(Some(Duration::from_millis(millis.parse().map_err(|_| format!("{millis:?} is no number"))?)))
}

/// The extractors of the tests.
pub fn times(declaration: &[u8]) -> Result<Box<dyn ExpiryTime>, String> {
    match declaration {
        HEAD => Ok(Box::new(head)),
        other => Err(format!("{} is unknown", other.escape_ascii())),
    }
}

/// How long rows are there in tables with a lifetime.
const LIFETIME: Duration = Duration::from_millis(300);

fn by_head() -> Expiry {
    Expiry::By(HEAD.to_vec())
}

fn with(expiry: Expiry) -> TableOptions {
    TableOptions { expiry, ..TableOptions::default() }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        match future.as_mut().poll(context) {
            std::task::Poll::Ready(done) => return done,
            std::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}

type Write = fn(&Database, &Table, &str, &str) -> Outcome<()>;

/// Every way of writing a row without a time.
const WAYS: &[(&str, Write)] = &[
    ("insert", |_, table, key, value| table.insert(key, value)),
    ("insert_parts", |_, table, key, value| table.insert_parts(key, &[value])),
    ("extend", |_, table, key, value| table.extend([(key, value)])),
    ("insert_async", |_, table, key, value| now(table.insert_async(key, value))),
    ("insert_parts_async", |_, table, key, value| now(table.insert_parts_async(key, &[value]))),
    ("insert_new", |_, table, key, value| table.insert_new(key, value).map(|is_new| assert!(is_new))),
    ("compare_and_swap", |_, table, key, value| {
        table.compare_and_swap(key, None::<&str>, Some(value)).map(|swapped| assert!(swapped.is_ok()))
    }),
    ("replace", |_, table, key, value| table.replace(key, value).map(drop)),
    ("replace_async", |_, table, key, value| now(table.replace_async(key, value)).map(drop)),
    ("fetch_update", |_, table, key, value| table.fetch_update(key, |_| Some(value.into())).map(drop)),
    ("merge", |_, table, key, value| table.merge(key, MergeOp::Append(value.as_bytes()))),
    ("merge_async", |_, table, key, value| now(table.merge_async(key, MergeOp::Append(value.as_bytes())))),
    ("batch", |db, table, key, value| {
        let mut batch = db.batch();
        batch.insert(table, key, value);
        batch.commit().map(drop)
    }),
    ("submitted batch of parts", |db, table, key, value| {
        let mut batch = db.batch();
        batch.insert_parts(table, key, &[value]);
        batch.submit()?.wait().map(drop)
    }),
    ("batch of a merge", |db, table, key, value| {
        let mut batch = db.batch();
        batch.merge(table, key, MergeOp::Append(value.as_bytes()));
        batch.commit().map(drop)
    }),
    ("async batch of a merge", |db, table, key, value| {
        let mut batch = db.batch();
        batch.merge(table, key, MergeOp::Append(value.as_bytes()));
        now(batch.commit_async()).map(drop)
    }),
    ("transaction", |db, table, key, value| {
        let mut tx = db.begin()?;
        tx.insert(table, key, value)?;
        tx.commit().map(|committed| assert!(committed.is_ok()))
    }),
    ("transaction of parts", |db, table, key, value| {
        let mut tx = db.begin()?;
        tx.insert_parts(table, key, &[value])?;
        tx.commit().map(|committed| assert!(committed.is_ok()))
    }),
    ("transaction of a merge", |db, table, key, value| {
        let mut tx = db.begin()?;
        tx.merge(table, key, MergeOp::Append(value.as_bytes()))?;
        assert!(tx.reader(table)?.until(key)?.is_some(), "the transaction sees the time");
        tx.commit().map(|committed| assert!(committed.is_ok()))
    }),
];

/// Ways that tables with indexes do not take.
const BULK: &[(&str, Write)] = &[
    ("import", |_, table, key, value| {
        let mut import = table.import()?;
        import.add(key.as_bytes(), value.as_bytes())?;
        import.finish(|_| {}).map(drop)
    }),
    ("import of parts that come out of order", |_, table, key, value| {
        let mut import = table.import()?;
        for suffix in ["z", "y", "", "x"] {
            import.add_parts(format!("{key}{suffix}").as_bytes(), &[value])?;
        }
        import.finish(|_| {}).map(drop)
    }),
];

#[test]
fn every_way_of_writing_a_row_gives_it_the_time_of_its_table() {
    for indexed in [false, true] {
        for expiry in [Expiry::After(LIFETIME), by_head()] {
            let mut world = World::new();
            let (db, _) = world.open();
            let table = db.table_with("given", with(expiry.clone())).expect("the disk works");
            if indexed {
                table.create_index("by_value", "whole", &IndexOptions::default(), |_| {}).expect("the disk works");
            }
            let ways = WAYS.iter().chain(if indexed { &[] } else { BULK });
            for (way, write) in ways {
                let until = db.clock() + LIFETIME;
                let value = format!("{}:{way}", until.as_millis());
                write(&db, &table, way, &value).unwrap_or_else(|error| panic!("{way}: {error}"));
                assert_eq!(table.until(way).expect("the disk works"), Some(until), "{way} {expiry:?} {indexed}");
                assert_eq!(table.get(way).expect("the disk works").as_deref(), Some(value.as_bytes()), "{way}");
                world.jump(7);
            }
            world.jump(1000);
            assert_eq!(table.iter().count(), 0);
            if indexed {
                let index = table.index("by_value").expect("it is there");
                assert_eq!(index.entries(..).count(), 0);
                db.compact().expect("the disk works");
                assert!(index.check(|_| {}).expect("the disk works").problems.is_empty());
            }
        }
    }
}

#[test]
fn a_time_that_the_write_names_wins_and_a_row_without_one_may_stay() {
    let mut world = World::new();
    let (db, _) = world.open();
    for expiry in [Expiry::After(LIFETIME), by_head()] {
        let table = db.table_with(&format!("{expiry:?}"), with(expiry.clone())).expect("the disk works");
        let until = in_millis(&db, 5);
        table.insert_until("a", "not a number", until).expect("it has a time");
        let mut batch = db.batch().own_times();
        batch.insert_until(&table, "b", "1:", until);
        batch.insert(&table, "c", "2:");
        batch.merge(&table, "d", MergeOp::Append(b"3:"));
        batch.commit().expect("it is taken");
        let options = TransactionOptions { own_times: true, ..TransactionOptions::default() };
        let mut tx = db.begin_with(&options).expect("it begins");
        tx.insert(&table, "e", "4:").expect("it is taken");
        tx.merge(&table, "f", MergeOp::Append(b"5:")).expect("it is taken");
        assert!(tx.commit().expect("the disk works").is_ok());
        let found = ["a", "b", "c", "d", "e", "f"].map(|key| table.until(key).expect("the disk works"));
        assert_eq!(found, [Some(until), Some(until), None, None, None, None], "{expiry:?}");
    }
    let table = db.existing_table(&format!("{:?}", by_head())).expect("it reads").expect("it is there");
    table.insert("g", ":stays").expect("it is taken");
    assert!(table.contains_key("g").expect("the disk works") && table.until("g").expect("the disk works").is_none());
}

#[test]
fn a_merge_keeps_the_time_of_a_row_or_computes_it_from_the_new_value() {
    let mut world = World::new();
    let (db, _) = world.open();
    let counters = db.table_with("counters", with(Expiry::After(LIFETIME))).expect("the disk works");
    let until = db.clock() + LIFETIME;
    let value = || counters.get("a").expect("the disk works").map(|value| value.to_vec());
    for count in 1..=3_i64 {
        counters.merge("a", MergeOp::Add(1)).expect("it is taken");
        assert_eq!(value(), Some(count.to_le_bytes().to_vec()));
        assert_eq!(counters.until("a").expect("the disk works"), Some(until), "a merge is no new row");
        world.jump(50);
    }
    world.jump(200);
    assert_eq!(value(), None);
    counters.merge("a", MergeOp::Add(1)).expect("it is taken");
    assert_eq!(value(), Some(1_i64.to_le_bytes().to_vec()), "it begins anew");
    assert_eq!(counters.until("a").expect("the disk works"), Some(db.clock() + LIFETIME));

    let lists = db.table_with("lists", with(by_head())).expect("the disk works");
    lists.insert("a", "9000000").expect_err("it has no colon");
    lists.merge("a", MergeOp::Append(b"9000000:x")).expect("it is taken");
    lists.merge("a", MergeOp::Max(b"9000001:y")).expect("it is taken");
    assert_eq!(lists.until("a").expect("the disk works"), Some(Duration::from_millis(9_000_001)));
    let refused = lists.merge("b", MergeOp::Append(b"x")).expect_err("it has no colon");
    assert!(matches!(refused, Error::BadRow { index: None, .. }), "{refused}");
}

#[test]
fn a_row_whose_time_cannot_be_computed_is_refused_by_every_way_of_writing() {
    let mut world = World::new();
    let (db, _) = world.open();
    let bad = db.table_with("bad", with(by_head())).expect("the disk works");
    let unknown = db.table_with("unknown", with(Expiry::By(b"other".to_vec()))).expect("it is found at the writes");
    for (way, write) in WAYS.iter().chain(BULK) {
        let error = write(&db, &bad, way, "soon").expect_err(way);
        assert!(matches!(&error, Error::BadRow { index: None, why, .. } if why == "it has no colon"), "{way}: {error}");
        let error = write(&db, &unknown, way, "1:").expect_err(way);
        assert!(matches!(&error, Error::NoExpiryTime { why, .. } if why == "other is unknown"), "{way}: {error}");
    }
    assert!(bad.is_empty().expect("the disk works") && unknown.is_empty().expect("the disk works"));
    let error = bad.insert("k", "soon").expect_err("it has no colon").to_string();
    let expected = "row k of table bad does not fit the declaration by which its rows expire: it has no colon; write \
                    another row, or alter the option expiry of the table";
    assert_eq!(error, expected);
    let error = unknown.insert("k", "1:").expect_err("nothing computes it").to_string();
    let expected = "the rows of table unknown expire by other, and nothing computes their times (other is unknown); open \
                    the database with Builder::expiry_times, or alter the option expiry of the table";
    assert_eq!(error, expected);
    unknown.insert_until("k", "1:", in_millis(&db, 9)).expect("it has a time of its own");
    unknown.remove("k").expect("it is taken");
}

#[test]
fn the_option_holds_from_an_alter_on_and_goes_with_the_table() {
    let mut world = World::new();
    let (mut db, mut table) = world.open();
    let options = [Expiry::After(LIFETIME), by_head(), Expiry::Never, Expiry::After(2 * LIFETIME)];
    for (round, expiry) in options.into_iter().enumerate() {
        table.insert("before", format!("7000000:{round}")).expect("it is taken");
        let before = table.until("before").expect("the disk works");
        table.alter(|options| options.expiry = expiry.clone()).expect("the disk works");
        assert_eq!(table.until("before").expect("the disk works"), before, "rows that are there keep their times");
        drop((table, db));
        (db, table) = world.open();
        assert_eq!(table.options().expiry, expiry);
        let clone = table.clone_as("clone").expect("the disk works");
        let rest = clone.split_off("c", "rest").expect("the disk works");
        drop(clone);
        db.rename_table("clone", "renamed").expect("the disk works");
        let renamed = db.existing_table("renamed").expect("it reads").expect("it is there");
        for table in [&table, &rest, &renamed] {
            assert_eq!(table.options().expiry, expiry);
            table.insert("d", "8000000:").expect("it is taken");
            let expected = match &expiry {
                Expiry::Never => None,
                Expiry::After(time) => Some(db.clock() + *time),
                Expiry::By(_) => Some(Duration::from_millis(8_000_000)),
            };
            assert_eq!(table.until("d").expect("the disk works"), expected, "{expiry:?}");
        }
        assert_eq!(renamed.until("before").expect("the disk works"), before);
        for name in ["renamed", "rest"] {
            assert!(db.drop_table(name).expect("the disk works"));
        }
    }
    table.alter(|options| options.expiry = Expiry::After(Duration::ZERO)).expect_err("no row could be there");
    table.alter(|options| options.expiry = Expiry::By(Vec::new())).expect_err("it declares nothing");
    let follower = Machine { clock: world.clock.clone(), ..Machine::simulated_on(world.disk.clone(), 99) };
    let follower = Database::builder("db").machine(follower).follow(crate::Follow::Commits).open().expect("it opens");
    let its = || follower.existing_table("t").expect("it reads").expect("it is there").options().expiry;
    assert_eq!(its(), Expiry::After(2 * LIFETIME));
    table.alter(|options| options.expiry = by_head()).expect("the disk works");
    follower.catch_up().expect("the disk works");
    assert_eq!(its(), by_head());
}

/// Builds files with the rows "b", "a" and "c" for a table with this option, in the directory `name`.
fn build(world: &mut World, name: &str, expiry: Expiry) {
    world.opened += 1;
    let machine = Machine { clock: world.clock.clone(), ..Machine::simulated_on(world.disk.clone(), world.opened) };
    let builder = Database::builder(name).machine(machine).expiry_times(times);
    let mut files = builder.build_files(with(expiry)).expect("the disk works");
    for key in ["b", "a", "c"] {
        files.add(key.as_bytes(), b"5000000:").expect("it is taken");
    }
    files.finish(|_| {}).expect("the disk works");
}

#[test]
fn built_files_have_the_times_of_their_build_and_others_are_refused() {
    let mut world = World::new();
    let (db, plain) = world.open();
    build(&mut world, "lived", Expiry::After(LIFETIME));
    let until = db.clock() + LIFETIME;
    build(&mut world, "plain", Expiry::Never);
    build(&mut world, "by head", by_head());
    world.jump(100);
    let given = db.table_with("given", with(Expiry::After(LIFETIME))).expect("the disk works");
    for name in ["plain", "by head"] {
        let refused = given.ingest(&[name], IngestOptions::default()).expect_err("they have other times");
        let text = refused.to_string();
        assert!(matches!(refused, Error::BadOptions(_)) && text.contains("were built without them"), "{text}");
    }
    assert!(given.is_empty().expect("the disk works"));
    given.ingest(&["lived"], IngestOptions::default()).expect("they are alike");
    assert_eq!(given.until("a").expect("the disk works"), Some(until));
    plain.ingest(&["by head"], IngestOptions::default()).expect("this table asks for nothing");
    assert_eq!(plain.until("c").expect("the disk works"), Some(Duration::from_millis(5_000_000)));
    drop((given, plain, db));
    let (db, plain) = world.open();
    let given = db.existing_table("given").expect("it reads").expect("it is there");
    world.jump(LIFETIME.as_millis() as i64);
    assert_eq!((given.iter().count(), given.count_exact(..).expect("the disk works")), (0, 0));
    assert_eq!(plain.iter().count(), 3);
    world.jump(5_000_000);
    assert_eq!((plain.iter().rev().count(), plain.count_exact(..).expect("the disk works")), (0, 0));
    db.compact().expect("the disk works");
    db.check(|_| {}).expect("nothing is damaged");
}

#[test]
fn an_import_is_refused_if_the_option_is_altered_before_its_end() {
    let mut world = World::new();
    let (_db, table) = world.open();
    let set = |expiry: &Expiry| table.alter(|options| options.expiry = expiry.clone()).expect("the disk works");
    let options = [Expiry::Never, Expiry::After(LIFETIME), Expiry::After(2 * LIFETIME), by_head()];
    for (first, second) in options.iter().flat_map(|first| options.iter().map(move |second| (first, second))) {
        set(first);
        let mut import = table.import().expect("the disk works");
        import.add(b"k", b"7000000:").expect("it is taken");
        set(second);
        let outcome = import.finish(|_| {});
        if first == second {
            outcome.expect("the option is as it was");
            table.clear().expect("the disk works");
        } else {
            let refused = outcome.expect_err("the rows have other times");
            let text = refused.to_string();
            assert!(matches!(refused, Error::BadOptions(_)) && text.contains("import the rows again"), "{text}");
        }
        assert!(table.is_empty().expect("the disk works"), "{first:?} {second:?}");
    }
    set(&by_head());
    let mut import = table.import().expect("the disk works");
    import.add(b"k", b"7000000:").expect("it is taken");
    set(&Expiry::Never);
    set(&by_head());
    import.finish(|_| {}).expect("the option is again what it was");
    assert_eq!(table.until("k").expect("the disk works"), Some(Duration::from_millis(7_000_000)));
}

#[test]
fn an_ingest_is_refused_if_the_option_is_altered_before_its_end() {
    let mut world = World::new();
    let (_db, table) = world.open();
    let long = Expiry::After(1000 * LIFETIME);
    build(&mut world, "lived", long.clone());
    for (expiry, fits) in [(by_head(), false), (long, true)] {
        table.alter(|options| options.expiry = Expiry::Never).expect("the disk works");
        // The callback is called while the files are brought, after the first look at the option.
        let outcome = table.ingest_with(&["lived"], IngestOptions::default(), |progress| {
            if progress.done > 0 {
                table.alter(|options| options.expiry = expiry.clone()).expect("the disk works");
            }
        });
        assert_eq!(table.options().expiry, expiry, "the callback was called");
        match outcome {
            Ok(report) => assert!(fits && report.rows == 3, "{report:?}"),
            Err(refused) => {
                assert!(!fits && matches!(refused, Error::BadOptions(_)), "{refused}");
                assert!(table.is_empty().expect("the disk works"));
            }
        }
    }
    assert_eq!(table.iter().count(), 3);
}

#[test]
fn each_commit_of_an_extend_has_the_times_of_an_option_that_was_altered_before_it() {
    let mut world = World::new();
    let (_db, table) = world.open();
    let value = vec![7; 600 << 10];
    let rows = (0..4_u8).map(|number| {
        if number == 2 {
            table.alter(|options| options.expiry = Expiry::After(LIFETIME)).expect("the disk works");
        }
        ([number], &value)
    });
    table.extend(rows).expect("the disk works");
    let has_time = [0, 1, 2, 3].map(|number| table.until([number]).expect("the disk works").is_some());
    assert_eq!(has_time, [false, false, true, true]);
}

#[test]
fn an_extractor_is_made_once_for_a_declaration_and_a_panic_stops_no_writes() {
    let mut world = World::new();
    let made = Arc::new(AtomicI64::new(0));
    let counted = made.clone();
    let make = move |declaration: &[u8]| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert!(declaration != b"panic", "the test wants it");
        times(declaration)
    };
    let db = world.builder().expiry_times(make).open().expect("the disk works");
    let table = db.table_with("t", with(by_head())).expect("the disk works");
    assert_eq!(made.load(Ordering::Relaxed), 1);
    table.alter(|options| options.filter_prefix_bytes = 3).expect("the disk works");
    assert_eq!(made.load(Ordering::Relaxed), 1, "the declaration is the same");
    table.alter(|options| options.expiry = Expiry::By(b"panic".to_vec())).expect("the disk works");
    let error = table.insert("k", "1:").expect_err("nothing computes it");
    assert!(matches!(&error, Error::NoExpiryTime { why, .. } if why.ends_with("panicked")), "{error}");
    table.alter(|options| options.expiry = by_head()).expect("writes go on");
    table.insert("k", "7000000:").expect("writes go on");
    assert_eq!(table.until("k").expect("the disk works"), Some(Duration::from_millis(7_000_000)));
}

#[test]
fn a_batch_with_writes_cannot_get_times_of_its_own() {
    let mut world = World::new();
    let (db, table) = world.open();
    let mut batch = db.batch();
    batch.insert(&table, "k", "1:");
    let refused = batch.own_times().commit().expect_err("it is too late");
    assert!(refused.to_string().contains("before the first write"), "{refused}");
    assert!(table.is_empty().expect("the disk works"));
}

#[test]
fn a_lifetime_begins_again_when_a_value_is_replaced() {
    let mut world = World::new();
    let (db, _) = world.open();
    let table = db.table_with("given", with(Expiry::After(LIFETIME))).expect("the disk works");
    table.insert("k", "a").expect("it is taken");
    world.jump(100);
    table.fetch_update("k", |_| Some(b"b".to_vec())).expect("it is taken");
    assert_eq!(table.until("k").expect("the disk works"), Some(db.clock() + LIFETIME));
    world.jump(100);
    table.compare_and_swap("k", Some("b"), Some("c")).expect("the disk works").expect("it is b");
    assert_eq!(table.until("k").expect("the disk works"), Some(db.clock() + LIFETIME));
    let until = db.clock() + LIFETIME;
    world.jump(100);
    table.merge("k", MergeOp::Append(b"d")).expect("it is taken");
    assert_eq!(table.until("k").expect("the disk works"), Some(until), "a merge is no new row");
}

#[test]
fn a_revert_leaves_the_time_of_a_row_with_the_same_value() {
    let mut world = World::new();
    let (db, table) = world.open();
    let [before, after] = [1000, 2000].map(|millis| in_millis(&db, millis));
    table.insert_until("same", "a", before).expect("it is taken");
    table.insert_until("other", "a", before).expect("it is taken");
    let then = db.snapshot();
    table.insert_until("same", "a", after).expect("it is taken");
    table.insert_until("other", "b", after).expect("it is taken");
    assert_eq!(table.revert(&then, ..).expect("the disk works"), 1);
    assert_eq!(table.until("same").expect("the disk works"), Some(after));
    assert_eq!(table.until("other").expect("the disk works"), Some(before));
}

#[test]
fn a_repair_and_a_revert_change_no_time() {
    let mut world = World::new();
    {
        let (db, table) = world.open();
        table.insert("old", ":").expect("it is taken");
        let before = db.snapshot();
        table.alter(|options| options.expiry = by_head()).expect("the disk works");
        table.remove("old").expect("it is taken");
        assert_eq!(table.revert(&before, ..).expect("the disk works"), 1);
        assert_eq!(table.until("old").expect("the disk works"), None, "it had none");
        table.insert("new", "7000000:").expect("it is taken");
        db.flush().expect("the disk works");
    }
    world.opened += 1;
    let machine = Machine { clock: world.clock.clone(), ..Machine::simulated_on(world.disk.clone(), world.opened) };
    crate::repair::repair_on(&machine, "db".as_ref(), "new".as_ref(), |_| {}).expect("the disk works");
    let db = Database::builder("new").machine(machine).expiry_times(times).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    assert_eq!(table.options().expiry, by_head());
    assert_eq!(table.until("old").expect("the disk works"), None);
    assert_eq!(table.until("new").expect("the disk works"), Some(Duration::from_millis(7_000_000)));
}

#[test]
fn a_release_without_times_does_not_get_the_option() {
    let mut world = World::new();
    let old = world.builder().compat(Release::V0_1).open().expect("it is empty");
    let refused = old.table_with("t", with(Expiry::After(LIFETIME))).expect_err("0.1 does not know it");
    assert!(refused.to_string().contains("leave the option expiry out"), "{refused}");
    let table = old.table("t").expect("the disk works");
    table.alter(|options| options.expiry = by_head()).expect_err("0.1 does not know it");
    drop((table, old));
    let (db, table) = world.open();
    table.alter(|options| options.expiry = by_head()).expect("the disk works");
    drop((table, db));
    let refused = world.builder().compat(Release::V0_1).open().expect_err("its manifest has the option");
    assert!(refused.to_string().contains("table t gives times to its rows"), "{refused}");
    let (db, table) = world.open();
    table.alter(|options| options.expiry = Expiry::Never).expect("the disk works");
    drop((table, db));
    world.builder().compat(Release::V0_1).open().expect("no row has a time");
}

/// Tables with random options, which are altered, with indexes, crashes and reopens, compared with maps.
#[test]
fn reads_agree_with_maps_while_tables_give_times() {
    type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<Duration>)>;
    for seed in 0..25 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let mut world = World::new();
        let names = ["plain", "lived", "by head", "indexed"];
        let draw = |rng: &mut StdRng| match rng.random_range(0..4) {
            0 => Expiry::Never,
            1 => by_head(),
            _ => Expiry::After(Duration::from_millis(rng.random_range(1..400))),
        };
        let open = |world: &mut World| {
            let db = world.builder().open().expect("the disk works");
            let tables = names.map(|name| db.existing_table(name).expect("it reads").expect("it is there"));
            (db, tables)
        };
        {
            let db = world.builder().open().expect("the disk works");
            for name in names {
                let expiry = if name == "plain" { Expiry::Never } else { draw(&mut rng) };
                let table = db.table_with(name, with(expiry)).expect("the disk works");
                if name == "indexed" {
                    table.create_index("by_value", "whole", &IndexOptions::default(), |_| {}).expect("it is empty");
                }
            }
        }
        let (mut db, mut tables) = open(&mut world);
        let mut models: [Model; 4] = Default::default();
        let keys: Vec<Vec<u8>> = (0..10_u8).map(|i| vec![b'k', i]).collect();
        for step in 0..100 {
            let at = rng.random_range(0..names.len());
            let (table, model) = (&tables[at], &mut models[at]);
            let expiry = table.options().expiry;
            let key = keys[rng.random_range(0..keys.len())].clone();
            let head = if rng.random_bool(0.2) { None } else { Some(in_millis(&db, rng.random_range(0..300))) };
            let written = head.map_or(String::new(), |head| head.as_millis().to_string());
            let value = format!("{written}:{}", rng.random_range(0..3)).into_bytes();
            // The time that the table gives to a row that is written now.
            let given = match &expiry {
                Expiry::Never => None,
                Expiry::After(time) => Some(db.clock() + *time),
                Expiry::By(_) => head,
            };
            match rng.random_range(0..24) {
                0..4 => {
                    table.insert(&key, &value).expect("it is taken");
                    model.insert(key, (value, given));
                }
                4..7 => {
                    let mut batch = db.batch();
                    batch.remove_range(table, &key[..]..&[b'k', key[1] + 1][..]);
                    batch.insert_parts(table, &key, &[&value]);
                    batch.commit().expect("it is taken");
                    model.insert(key, (value, given));
                }
                7..10 => {
                    let mut tx = db.begin().expect("it begins");
                    tx.insert(table, &key, &value).expect("it is taken");
                    if rng.random() {
                        assert!(tx.commit().expect("the disk works").is_ok());
                        model.insert(key, (value, given));
                    }
                }
                10..12 => {
                    let until = in_millis(&db, rng.random_range(0..400));
                    table.insert_until(&key, &value, until).expect("it is taken");
                    model.insert(key, (value, Some(until)));
                }
                // Where a table gives no times, the bytes that were merged into a row with a time stay when it expires.
                12..15 if expiry != Expiry::Never => {
                    let before = model.get(&key).filter(|(_, until)| until.is_none_or(|until| until > db.clock()));
                    let kept = before.and_then(|(_, until)| *until);
                    let value = before.map_or(value.clone(), |(before, _)| value.clone().max(before.clone()));
                    table.merge(&key, MergeOp::Max(&value)).expect("it is taken");
                    let until = match &expiry {
                        Expiry::Never => unreachable!("it gives times"),
                        Expiry::After(time) => kept.or(Some(db.clock() + *time)),
                        Expiry::By(_) => self::head(&key, &value).expect("it has a head"),
                    };
                    model.insert(key, (value, until));
                }
                15 if names[at] != "indexed" => {
                    let mut import = table.import().expect("the disk works");
                    import.add(&key, &value).expect("it is taken");
                    import.finish(|_| {}).expect("the disk works");
                    model.insert(key, (value, given));
                }
                16 => {
                    table.remove(&key).expect("it is taken");
                    model.remove(&key);
                }
                17 => {
                    let expiry = draw(&mut rng);
                    table.alter(|options| options.expiry = expiry).expect("the disk works");
                }
                18 => db.flush().expect("the disk works"),
                19 => db.compact().expect("the disk works"),
                20 => {
                    let before = tables.each_ref().map(|table| table.options().expiry);
                    drop((tables, db));
                    if rng.random() {
                        world.disk.crash();
                    }
                    (db, tables) = open(&mut world);
                    assert_eq!(tables.each_ref().map(|table| table.options().expiry), before);
                }
                _ => world.jump(rng.random_range(-100..150)),
            }
            let now = db.clock();
            for (table, model) in tables.iter().zip(&models) {
                let there = model.iter().filter(|(_, (_, until))| until.is_none_or(|until| until > now));
                let expected: Rows = there.clone().map(|(key, (value, _))| (key.clone(), value.clone())).collect();
                let place = format!("seed {seed} step {step} table {}", table.name());
                assert_eq!(read(&db, table, &keys), expected, "{place}");
                for (key, (_, until)) in there {
                    assert_eq!(table.until(key).expect("the disk works"), *until, "{place}");
                }
                let count = table.count_exact(..).expect("the disk works");
                assert_eq!(count, expected.len() as u64, "{place}");
                if table.name() == "indexed" {
                    let index = table.index("by_value").expect("it is there");
                    assert_eq!(index.entries(..).count(), expected.len(), "{place}");
                }
            }
        }
        db.check(|_| {}).expect("nothing is damaged");
        let index = tables[3].index("by_value").expect("it is there");
        assert!(index.check(|_| {}).expect("the disk works").problems.is_empty());
    }
}
