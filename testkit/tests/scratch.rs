//! Work on a database in a store writes temporary files to a disk of this machine, reads them back from there, and
//! leaves nothing behind.

use larch::machine::Machine;
use larch::{Database, Readable as _};
use objects::{Local, StoreDisk};
use os::Disk;
use os::io::StoreReads;
use os::sim::{SimClock, SimDisk, SimStore};
use os::sync::Arc;
use std::io::ErrorKind;
use std::path::Path;
use testkit::stored::{on_store, outside, small};

const DIRECTORY: &str = "/db";
const SCRATCH: &str = "/scratch";
const ROWS: u32 = 5000;

struct World {
    store: Arc<SimStore>,
    near: Arc<SimDisk>,
    machine: Machine,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(SimClock::new());
        let (store, near) = (SimStore::new(1, clock.clone()), SimDisk::new(1));
        let machine = on_store(store.client(), DIRECTORY, &clock, 1);
        let local = Local { disk: near.clone(), logs: None, scratch: Some(SCRATCH.into()) };
        let disk = StoreDisk::with_local(store.client(), Path::new(DIRECTORY), outside(&clock, 1), local);
        let reads = Arc::new(StoreReads::new(4, machine.reads.clone(), clock));
        Self { store, near, machine: Machine { disk, reads, ..machine } }
    }

    fn open(&self) -> Database {
        small(&self.machine, DIRECTORY).open().expect("there is no trouble")
    }

    /// How many SSTs are in the store, whether a database uses them or not.
    fn objects(&self) -> usize {
        self.store.names().iter().filter(|name| name.ends_with(".sst")).count()
    }

    fn scratch_entries(&self) -> usize {
        self.near.list(Path::new(SCRATCH)).map_or(0, |entries| entries.len())
    }
}

/// Distinct keys in a scrambled order.
fn key(i: u32) -> [u8; 4] {
    i.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

fn import(db: &Database) -> larch::Result<larch::bulk::ImportReport> {
    let table = db.table("t")?;
    let mut import = table.import()?;
    for i in 0..ROWS {
        import.add(&key(i), &[7; 100])?;
    }
    import.finish(|_| {})
}

#[test]
fn the_sorted_runs_of_an_import_into_a_store_stay_on_this_machine() {
    let world = World::new();
    let db = world.open();
    let before = world.store.counts();
    let report = import(&db).expect("there is no trouble");
    assert!(report.runs > 5, "{} runs are merged", report.runs);
    let made = world.objects() as u64;
    // Rows before the first one out of order went directly to a file in the store, so the store may have one more
    // object than the import has files.
    assert!(made <= report.files + 1, "{made} objects for {} files", report.files);
    let counts = world.store.counts();
    assert!(counts.gets - before.gets < 30, "{} reads", counts.gets - before.gets);
    assert!(world.scratch_entries() == 1, "there is a directory as long as the database is open");
    let table = db.table("t").expect("it is there");
    assert_eq!(table.iter().count(), ROWS as usize);
    table.create_index("i", "", &larch::index::IndexOptions::default(), |_| {}).expect_err("there is no extractor");
    drop((table, db));
    assert_eq!(world.scratch_entries(), 0, "nothing is left");
}

#[test]
fn a_large_transaction_on_a_store_puts_only_what_it_commits() {
    let world = World::new();
    let db = world.open();
    let table = db.table("t").expect("there is no trouble");
    let before = world.objects();
    let mut transaction = db.begin().expect("it is open");
    for i in 0..ROWS {
        transaction.insert(&table, key(i), [7; 100]).expect("there is no trouble");
    }
    assert_eq!(world.objects(), before, "nothing of it is in the store");
    let used = world.near.used_bytes();
    assert!(used > u64::from(ROWS) * 50, "{used} bytes are on this machine");
    assert_eq!(transaction.get(&table, key(1)).expect("it is read").map(|value| value.len()), Some(100));
    transaction.commit().expect("there is no trouble").expect("nobody else writes");
    assert!(world.near.used_bytes() < 1000, "{} bytes are left on this machine", world.near.used_bytes());
    assert_eq!(table.iter().count(), ROWS as usize);
}

#[test]
fn what_a_process_has_left_that_died_goes_with_the_next_use() {
    let world = World::new();
    let left = Path::new(SCRATCH).join("larch-0123456789abcdef");
    let near: &dyn Disk = &*world.near;
    near.create_dir(&left).expect("the disk works");
    near.create_with(&left.join("LOCK"), b"").expect("the disk works");
    near.create_with(&left.join("00000012-3.sst"), b"rows").expect("the disk works");
    // The scratch directory of a running process and a directory of somebody else must stay.
    let alive = Path::new(SCRATCH).join("larch-fedcba9876543210");
    near.create_dir(&alive).expect("the disk works");
    let _lock = near.lock(&alive.join("LOCK")).expect("the disk works");
    near.create_dir(&Path::new(SCRATCH).join("larch-other")).expect("the disk works");
    let db = world.open();
    import(&db).expect("there is no trouble");
    let exists = |path: &Path| near.exists(path).expect("the disk works");
    assert_eq!((exists(&left), exists(&alive)), (false, true));
    assert!(exists(&Path::new(SCRATCH).join("larch-other")));
}

#[test]
fn an_import_whose_scratch_is_full_says_where_and_may_be_done_again() {
    let world = World::new();
    let db = world.open();
    world.near.set_capacity(100_000);
    let error = import(&db).expect_err("there is no room").to_string();
    assert!(error.contains(SCRATCH), "{error}");
    world.near.set_capacity(u64::MAX);
    assert_eq!(import(&db).expect("there is room").rows, u64::from(ROWS));
    assert_eq!(db.table("t").expect("it is there").iter().count(), ROWS as usize);
}

#[test]
fn a_directory_that_others_have_removed_is_made_anew() {
    let world = World::new();
    let db = world.open();
    import(&db).expect("there is no trouble");
    world.near.remove_directory(SCRATCH);
    assert_eq!(import(&db).expect("another one is made").rows, u64::from(ROWS));
    assert_eq!(world.scratch_entries(), 1);
    drop(db);
    assert_eq!(world.scratch_entries(), 0);
}

#[test]
fn an_operation_that_fails_while_the_directory_is_made_leaves_nothing() {
    let mut failed = 0;
    for n in 1..12 {
        let world = World::new();
        let db = world.open();
        world.near.fail_operation(n, ErrorKind::PermissionDenied);
        failed += u32::from(import(&db).is_err());
        world.near.clear_faults();
        assert_eq!(import(&db).expect("the fault has passed").rows, u64::from(ROWS));
        drop(db);
        assert_eq!(world.scratch_entries(), 0, "operation {n}");
    }
    assert!(failed > 5, "{failed} imports failed");
}
