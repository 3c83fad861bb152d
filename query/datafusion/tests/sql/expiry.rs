//! Tests that rows that have expired are in no answer, whether they lie in memory or in files, now and as of a version
//! that is kept.

use crate::session::Session;
use kit::Scratch;
use larch::{Database, Snapshot, Table};
use larch_datafusion::LarchTable;
use os::sync::atomic::{AtomicU64, Ordering};
use os::{Clock, Machine};
use rows::Tuple;
use std::sync::Arc;
use std::time::Duration;

const COLUMNS: &str = "key.tuple(k u32), value.tuple(city string, n u32)";

/// The clock of the machine, whose wall time a test moves on.
#[derive(Debug)]
struct MovedOn {
    machine: Arc<dyn Clock>,
    ahead_millis: AtomicU64,
}

impl Clock for MovedOn {
    fn now(&self) -> Duration {
        self.machine.now()
    }

    fn wall(&self) -> Duration {
        self.machine.wall() + Duration::from_millis(self.ahead_millis.load(Ordering::Relaxed))
    }

    fn sleep(&self, time: Duration) {
        self.machine.sleep(time);
    }
}

/// A session with the tables of this snapshot, under names with this beginning.
fn add(session: &Session, snapshot: &Snapshot, tables: &[&Table], beginning: &str) {
    for table in tables {
        let columns = COLUMNS.parse().expect("they are columns");
        let of_snapshot = LarchTable::new(snapshot, table, columns).expect("the columns fit");
        let name = format!("{beginning}{}", table.name());
        session.context.register_table(name, Arc::new(of_snapshot)).expect("the name is free");
    }
}

#[test]
fn rows_that_have_expired_are_in_no_answer() {
    const HOUR: Duration = Duration::from_secs(3600);
    for in_files in [false, true] {
        let real = Machine::real();
        let clock = Arc::new(MovedOn { machine: real.clock.clone(), ahead_millis: AtomicU64::new(0) });
        let scratch = Scratch::new("sql-expiry");
        let builder = Database::builder(scratch.path()).machine(Machine { clock: clock.clone(), ..real });
        let database = builder.open().expect("a database");
        let (people, visits) = (database.table("people").expect("a table"), database.table("visits").expect("a table"));
        let value = |k: u32| (if k.is_multiple_of(2) { "Bonn" } else { "Oslo" }, k).to_key();
        for k in 0..300_u32 {
            // Each third row is there for an hour, beginning with the first and ending with the last.
            match k % 3 {
                0 => people.insert_for((k,).to_key(), value(k), HOUR).expect("it is written"),
                _ if k == 299 => people.insert_for((k,).to_key(), value(k), HOUR).expect("it is written"),
                _ => people.insert((k,).to_key(), value(k)).expect("it is written"),
            }
            visits.insert((k,).to_key(), value(k)).expect("it is written");
        }
        database.keep("monday").expect("it is kept");
        people.remove((4_u32,).to_key()).expect("it is removed");
        people.insert_for((7_u32,).to_key(), value(7), HOUR / 2).expect("it is written");
        if in_files {
            database.flush().expect("the disk works");
        }
        let answers = |begin: &str| {
            let session = Session::new(2, 100);
            add(&session, &database.snapshot(), &[&people, &visits], "");
            add(&session, &database.at("monday").expect("it is kept"), &[&people], "monday_");
            let people = format!("{begin}people");
            [
                session.rows(&format!("SELECT count(*) FROM {people}")),
                session.rows(&format!("SELECT min(k), max(k) FROM {people}")),
                session.rows(&format!("SELECT k FROM {people} WHERE k < 9 ORDER BY k")),
                session.rows(&format!("SELECT k FROM {people} ORDER BY k DESC LIMIT 2")),
                session.rows(&format!("SELECT n FROM {people} WHERE k IN (0, 1, 4, 7) ORDER BY n")),
                session.rows(&format!("SELECT city, count(*) FROM {people} WHERE k < 6 GROUP BY city ORDER BY city")),
                session.rows(&format!("SELECT count(*) FROM {people} p JOIN visits v ON p.k = v.k WHERE v.k < 30")),
                session.rows(&format!(
                    "SELECT v.k FROM visits v LEFT JOIN {people} p ON p.k = v.k \
                     WHERE p.k IS NULL AND v.k < 10 ORDER BY 1"
                )),
            ]
            .map(|rows| rows.join(" "))
        };
        let at_first = ["299", "0|299", "0 1 2 3 5 6 7 8", "299 298", "0 1 7", "Bonn|2 Oslo|3", "29", "4"];
        assert_eq!(answers(""), at_first, "in files {in_files}");
        let on_monday = ["300", "0|299", "0 1 2 3 4 5 6 7 8", "299 298", "0 1 4 7", "Bonn|3 Oslo|3", "30", ""];
        assert_eq!(answers("monday_"), on_monday, "in files {in_files}");

        clock.ahead_millis.store(HOUR.as_millis() as u64, Ordering::Relaxed);
        for _ in 0..2 {
            let left = ["197", "1|298", "1 2 5 8", "298 296", "1", "Bonn|1 Oslo|2", "18", "0 3 4 6 7 9"];
            assert_eq!(answers(""), left, "in files {in_files}");
            let left = ["199", "1|298", "1 2 4 5 7 8", "298 296", "1 4 7", "Bonn|2 Oslo|2", "20", "0 3 6 9"];
            assert_eq!(answers("monday_"), left, "in files {in_files}");
            database.compact().expect("the disk works");
        }
    }
}
