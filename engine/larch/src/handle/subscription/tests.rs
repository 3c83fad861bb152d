//! Tests what a subscription promises: its feed finds every commit after its position, whatever ends the process, and
//! it holds no more than its limits allow.

use super::*;
use crate::base::release::Release;
use crate::manifest::Edit;
use crate::manifest::directory::fresh::FreshFiles;
use crate::open::idle::IdleJob;
use crate::past::{ChangeKind, Retention};
use crate::{Builder, Durability, Follow, Table};
use os::sim::SimDisk;
use os::{Job, Machine};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

fn on(disk: &Arc<SimDisk>, seed: u64) -> Builder {
    Database::builder("db").machine(Machine::simulated_on(disk.clone(), seed)).write_buffer_bytes(64 << 10)
}

fn with_table() -> (Arc<SimDisk>, Database, Table) {
    let disk = Machine::simulated(1).1;
    let db = on(&disk, 1).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    (disk, db, table)
}

fn open(disk: &Arc<SimDisk>, seed: u64) -> (Database, Table) {
    let db = on(disk, seed).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    (db, table)
}

/// The puts that the feed gives until its end, with their versions.
fn given(subscription: &Subscription) -> Result<Vec<(u64, String)>> {
    let mut changes = subscription.changes()?;
    let mut all = Vec::new();
    while let Some(change) = changes.next_change()? {
        let ChangeKind::Put { value, .. } = change.kind() else { panic!("{change:?}") };
        all.push((change.version().0, String::from_utf8_lossy(value.whole()).into_owned()));
    }
    Ok(all)
}

fn position(db: &Database, name: &str) -> u64 {
    db.subscription(name).expect("it is there").position().expect("it is there").0
}

#[test]
fn a_reader_that_lags_finds_every_commit_and_holds_none_that_it_has_acknowledged() {
    let (_, db, table) = with_table();
    let mail = db.subscribe("mail", Limits::NONE).expect("the disk works");
    let begin = db.version();
    assert_eq!(mail.position().expect("it is there"), begin);
    let expected = |from: u64, to: u64| -> Vec<(u64, String)> { (from..=to).map(|v| (v, v.to_string())).collect() };
    for round in 1..=5_u64 {
        for _ in 0..20 {
            table.insert("a", (db.version().0 + 1).to_string()).expect("it is taken");
            if db.version().0.is_multiple_of(7) {
                db.flush().expect("the disk works");
            }
        }
        db.compact().expect("the disk works");
        let (from, newest) = (mail.position().expect("it is there").0, db.version().0);
        assert_eq!(given(&mail).expect("all is held"), expected(from + 1, newest));
        let middle = Version(from + (newest - from) / 2);
        mail.acknowledge(middle).expect("it is there");
        mail.acknowledge(Version(from)).expect("a position never goes back");
        assert_eq!(mail.position().expect("it is there"), middle, "round {round}");
        assert_eq!(given(&mail).expect("all is held"), expected(middle.0 + 1, newest));
    }
    mail.acknowledge(db.version()).expect("it is there");
    mail.sync().expect("the disk works");
    db.compact().expect("the disk works");
    assert_eq!(table.stats().expect("the disk works").history_rows, 0, "nothing holds the past any more");
    assert!(mail.acknowledge(Version(db.version().0 + 1)).is_err(), "there is no such version");
}

/// A database with the commits that it must have, and what is known of a subscription.
struct Run {
    disk: Arc<SimDisk>,
    seed: u64,
    lives: u64,
    durability: Durability,
    open: Option<(Database, Table)>,
    values: BTreeMap<u64, String>,
    /// The greatest version that was acknowledged, and the greatest of those that are durable for sure.
    acknowledged: u64,
    durable: u64,
}

impl Run {
    fn db(&self) -> &Database {
        &self.open.as_ref().expect("it is open").0
    }

    fn check(&self) {
        let (seed, db) = (self.seed, self.db());
        let at = position(db, "mail");
        assert!(at <= self.acknowledged, "seed {seed}: {at} is ahead of {}", self.acknowledged);
        assert!(at >= self.durable.min(db.version().0), "seed {seed}: {at} is before {}", self.durable);
        db.sync().expect("the disk works");
        let expected: Vec<(u64, String)> =
            self.values.range(at + 1..).map(|(version, value)| (*version, value.clone())).collect();
        let found = given(&db.subscription("mail").expect("it is there"));
        assert_eq!(found.unwrap_or_else(|error| panic!("seed {seed}: {error}")), expected, "seed {seed}");
    }

    fn reopen(&mut self) {
        self.lives += 1;
        let builder = on(&self.disk, self.seed * 1000 + self.lives).durability(self.durability);
        let db = builder.open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        let newest = db.version().0;
        self.values.retain(|version, _| *version <= newest);
        // What was acknowledged of commits that are lost is not acknowledged of those that get their versions.
        (self.acknowledged, self.durable) = (self.acknowledged.min(newest), self.durable.min(newest));
        self.open = Some((db, table));
    }
}

#[test]
fn a_crash_neither_moves_a_position_ahead_nor_loses_a_commit_after_it() {
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let durability = if seed % 2 == 0 { Durability::Synced } else { Durability::Buffered };
        let disk = Machine::simulated(seed).1;
        let (lives, values) = (0, BTreeMap::new());
        let mut run = Run { disk, seed, lives, durability, open: None, values, acknowledged: 0, durable: 0 };
        run.reopen();
        run.db().subscribe("mail", Limits::NONE).expect("the disk works");
        run.db().sync().expect("the disk works");
        (run.acknowledged, run.durable) = (run.db().version().0, run.db().version().0);
        for step in 0..250 {
            let (db, table) = run.open.as_ref().expect("it is open");
            let mail = db.subscription("mail").expect("it is there");
            match random.random_range(0..100) {
                0..60 => {
                    let value = format!("{step} {}", "x".repeat(random.random_range(0..200)));
                    table.insert(random.random_range(0..5_u8).to_string(), &value).expect("it is taken");
                    let version = db.version().0;
                    run.values.insert(version, value);
                }
                60..72 => {
                    let from = mail.position().expect("it is there").0;
                    let version = random.random_range(from..=db.version().0);
                    mail.acknowledge(Version(version)).expect("it is there");
                    run.acknowledged = run.acknowledged.max(version);
                }
                72..78 => {
                    // A crash may have taken back what was acknowledged before it.
                    let position = mail.position().expect("it is there").0;
                    mail.sync().expect("the disk works");
                    run.durable = run.durable.max(position);
                }
                78..84 => db.flush().expect("the disk works"),
                84..90 => db.compact().expect("the disk works"),
                90..93 => {
                    drop(mail);
                    run.open = None;
                    run.reopen();
                }
                93..97 => {
                    match random.random_bool(0.5) {
                        true => run.disk.crash(),
                        false => run.disk.crash_keeping_nothing(),
                    }
                    drop(mail);
                    run.open = None;
                    run.reopen();
                }
                _ => run.check(),
            }
        }
        run.check();
    }
}

/// What has succeeded before the disk failed.
#[derive(Default)]
struct Done {
    /// The position with which the subscription began, and what was acknowledged since.
    acknowledged: Option<u64>,
    durable: u64,
    values: BTreeMap<u64, String>,
}

fn subscribe_and_write(db: &Database, table: &Table, done: &mut Done) -> Result<()> {
    for round in 0..5 {
        if round == 1 {
            let mail = db.subscribe("mail", Limits::NONE)?;
            done.acknowledged = Some(mail.position()?.0);
            done.durable = mail.position()?.0;
        }
        for number in 0..5 {
            let value = format!("{round} {number}");
            table.insert("a", &value)?;
            done.values.insert(db.version().0, value);
        }
        if round > 1 {
            let mail = db.subscription("mail")?;
            let version = db.version().0 - 3;
            mail.acknowledge(Version(version))?;
            done.acknowledged = Some(version);
            if round == 3 {
                mail.sync()?;
                done.durable = version;
            }
        }
        db.flush()?;
        db.compact()?;
    }
    Ok(())
}

#[test]
fn a_failure_of_any_operation_and_a_crash_neither_move_a_position_nor_lose_a_commit() {
    for last in 1.. {
        let disk = Machine::simulated(last).1;
        let (db, table) = open(&disk, 1);
        disk.fail_all_after(disk.operation_count() + last, std::io::ErrorKind::Other);
        let mut done = Done::default();
        let outcome = subscribe_and_write(&db, &table, &mut done);
        drop((table, db));
        disk.crash();
        disk.clear_faults();
        let (db, table) = open(&disk, 2);
        match db.subscription("mail") {
            Err(error) => assert!(done.acknowledged.is_none(), "{last}: {error}"),
            Ok(mail) => {
                let at = mail.position().expect("it is there").0;
                assert!(at >= done.durable && at <= done.acknowledged.unwrap_or(db.version().0), "{last}: at {at}");
                // A commit that has failed may be there, as the last one.
                let found = given(&mail).unwrap_or_else(|error| panic!("{last}: {error}"));
                let expected: Vec<_> = done.values.range(at + 1..).map(|(v, value)| (*v, value.clone())).collect();
                assert!(found.len() <= expected.len() + 1, "{last}: {found:?}");
                assert_eq!(found[..expected.len()], expected, "{last}");
                // It holds what comes now, too.
                table.insert("a", "1").expect("the disk works again");
                table.insert("a", "2").expect("the disk works again");
                db.compact().expect("the disk works again");
                let held = given(&mail).unwrap_or_else(|error| panic!("{last}: {error}"));
                assert!(held.len() >= expected.len() + 2, "{last}: {held:?}");
            }
        }
        if outcome.is_ok() {
            assert!(last > 20, "some operations have failed");
            return;
        }
    }
}

#[test]
fn a_crash_within_a_subscribe_leaves_one_that_begins_with_what_is_there() {
    let (disk, db, table) = with_table();
    let core = db.core();
    for number in 0..5 {
        table.insert("a", number.to_string()).expect("it is taken");
    }
    let subscriber = Subscriber {
        id: SubscriptionId(core.writes.new_number()),
        name: "mail".to_owned(),
        position: Version(2),
        micros: 0,
        limits: Limits::NONE,
        hold: Hold::Unsure,
    };
    core.install(&[Edit::Subscribe(subscriber)], FreshFiles::new(&core.env.opener.leftovers), |_| {})
        .expect("the disk works");
    assert!(db.subscriptions().is_empty() && db.subscription("mail").is_err(), "nobody relies on it yet");
    assert!(db.at(Version(2)).is_err());
    disk.crash();
    drop((table, db));
    let (db, table) = open(&disk, 2);
    assert_eq!(position(&db, "mail"), 5);
    for value in ["6", "7"] {
        table.insert("a", value).expect("it is taken");
    }
    db.compact().expect("the disk works");
    let mail = db.subscribe("mail", Limits::NONE).expect("the disk works");
    assert_eq!(given(&mail).expect("all is held"), [(6, "6".to_owned()), (7, "7".to_owned())]);
}

#[test]
fn what_a_flush_has_computed_does_not_reach_a_later_subscription_of_the_same_name() {
    let (_, db, table) = with_table();
    let core = db.core();
    let mail = db.subscribe("mail", Limits::NONE.bytes(0)).expect("the disk works");
    for number in 0..9 {
        table.insert("a", vec![number; 5000]).expect("it is taken");
    }
    db.flush().expect("the disk works");
    let begin = db.subscription("mail").expect("it is there").position().expect("it is there");
    // It has let go, because it held more than nothing.
    assert!(mail.has_let_go().expect("it is there"));
    db.unsubscribe("mail").expect("the disk works").expect("it was there");
    let mail = db.subscribe("mail", Limits::NONE.age(Duration::from_secs(1))).expect("the disk works");
    table.insert("a", "1").expect("it is taken");
    mail.acknowledge(db.version()).expect("it is there");
    let late = subscribe::edits(core, db.version());
    assert!(late.iter().any(|edit| matches!(edit, Edit::Acknowledge { .. })), "{late:?}");
    db.unsubscribe("mail").expect("the disk works").expect("it was there");
    assert!(mail.position().is_err() && mail.acknowledge(begin).is_err(), "it was ended");
    let again = db.subscribe("mail", Limits::NONE).expect("the disk works");
    let at = again.position().expect("it is there");
    core.install(&late, FreshFiles::new(&core.env.opener.leftovers), |_| {}).expect("the disk works");
    assert_eq!(again.position().expect("it is there"), at);
    // A subscription that has moved on since does not let go.
    let id = core.views.newest().files.subscriber_named("mail").expect("it is there").id;
    table.insert("a", "2").expect("it is taken");
    again.acknowledge(db.version()).expect("it is there");
    again.sync().expect("the disk works");
    let edits = [Edit::LetGo { id, position: at }];
    core.install(&edits, FreshFiles::new(&core.env.opener.leftovers), |_| {}).expect("the disk works");
    assert!(!again.has_let_go().expect("it is there"));
}

#[test]
fn a_subscription_lets_go_of_commits_that_are_too_old_and_its_feed_says_so() {
    let (disk, db, table) = with_table();
    let clock = db.core().env.machine.clock.clone();
    let limits = Limits::NONE.age(Duration::from_secs(600));
    let [late, done] = ["late", "done"].map(|name| db.subscribe(name, limits).expect("the disk works"));
    for number in 0..10 {
        table.insert("a", number.to_string()).expect("it is taken");
        clock.sleep(Duration::from_secs(30));
        db.flush().expect("the disk works");
        db.compact().expect("the disk works");
    }
    assert_eq!(given(&late).expect("it is within its limit").len(), 10);
    done.acknowledge(db.version()).expect("it is there");
    // Nobody writes any more, and the idle job looks.
    let idle = IdleJob::new(Arc::downgrade(db.core()));
    for _ in 0..40 {
        clock.sleep(Duration::from_secs(37));
        idle.poll();
        idle.poll();
    }
    assert!(late.has_let_go().expect("it is there"));
    assert!(!done.has_let_go().expect("it is there"), "it has acknowledged everything");
    db.compact().expect("the disk works");
    assert!(matches!(given(&late), Err(Error::ChangesGone { .. })));
    assert_eq!(table.stats().expect("the disk works").history_rows, 0, "the space is given back");
    table.insert("a", "new").expect("it is taken");
    db.compact().expect("the disk works");
    assert_eq!(given(&done).expect("it keeps up").len(), 1);
    let listed = db.subscriptions();
    assert_eq!(
        listed.iter().map(|one| (&*one.name, one.has_let_go)).collect::<Vec<_>>(),
        [("late", true), ("done", false)]
    );
    assert!(listed.iter().all(|one| one.limits == limits));
    drop((late, done, idle, table, db));
    let (db, _) = open(&disk, 2);
    let names: Vec<_> = db.subscriptions().into_iter().map(|one| (one.name, one.has_let_go)).collect();
    assert_eq!(names, [("late".to_owned(), true), ("done".to_owned(), false)], "it is in the manifest");
}

#[test]
fn of_two_subscriptions_only_the_one_that_is_behind_lets_go_of_too_many_bytes() {
    let (_, db, table) = with_table();
    let limits = Limits::NONE.bytes(100_000);
    let [late, close] = ["late", "close"].map(|name| db.subscribe(name, limits).expect("the disk works"));
    let mut expected = 0;
    for round in 0..40_u8 {
        for number in 0..4_u8 {
            table.insert(number.to_string(), vec![round; 3_000]).expect("it is taken");
        }
        db.flush().expect("the disk works");
        db.compact().expect("the disk works");
        let has_let_go = late.has_let_go().expect("it is there");
        if !has_let_go {
            expected += 4;
            assert_eq!(late.changes().expect("it is there").next_commit().expect("all is held").len(), 1);
            assert!(u64::from(round) * 12_000 < 250_000, "it is far beyond its limit");
        }
        assert_eq!(close.changes().expect("it is there").next_commit().expect("all is held").len(), 1);
        close.acknowledge(Version(db.version().0 - 1)).expect("it is there");
    }
    assert!(expected * 3_000 > 100_000, "it may hold so much");
    assert!(late.has_let_go().expect("it is there") && !close.has_let_go().expect("it is there"));
    // A rule that holds the same makes the limit useless.
    let (_, db, table) = with_table();
    db.retain(Retention::Everything).expect("the disk works");
    let late = db.subscribe("late", limits).expect("the disk works");
    for round in 0..100_u8 {
        table.insert("a", vec![round; 3_000]).expect("it is taken");
    }
    db.compact().expect("the disk works");
    db.flush().expect("the disk works");
    assert!(!late.has_let_go().expect("it is there"));
}

#[test]
fn what_was_acknowledged_is_durable_after_a_close_a_flush_and_some_time() {
    let (disk, db, table) = with_table();
    let mail = db.subscribe("mail", Limits::NONE).expect("the disk works");
    let stored = |db: &Database| db.core().views.newest().files.subscriber_named("mail").expect("it is there").position;
    table.insert("a", "1").expect("it is taken");
    mail.acknowledge(db.version()).expect("it is there");
    assert!(stored(&db) < db.version(), "it costs no sync");
    db.flush().expect("the disk works");
    assert_eq!(stored(&db), db.version());
    assert!(db.core().writes.acknowledged.lock().positions.is_empty());
    // The idle job of a database with commits.
    let (clock, idle) = (db.core().env.machine.clock.clone(), IdleJob::new(Arc::downgrade(db.core())));
    for second in 0..15 {
        table.insert("a", "2").expect("it is taken");
        if second == 0 {
            mail.acknowledge(db.version()).expect("it is there");
        }
        let before = stored(&db);
        idle.poll();
        assert!(second >= 9 || stored(&db) == before, "second {second}");
        clock.sleep(Duration::from_secs(1));
    }
    assert_eq!(stored(&db), mail.position().expect("it is there"));
    mail.acknowledge(db.version()).expect("it is there");
    let newest = db.version();
    drop((mail, idle, table, db));
    let (db, _) = open(&disk, 2);
    assert_eq!(position(&db, "mail"), newest.0);
}

#[test]
fn a_database_at_rest_stores_what_was_acknowledged_before_its_commit_was_durable() {
    let disk = Machine::simulated(1).1;
    let db = on(&disk, 1).durability(Durability::Buffered).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mail = db.subscribe("mail", Limits::NONE.age(Duration::from_secs(86_400))).expect("the disk works");
    let stored = |db: &Database| db.core().views.newest().files.subscriber_named("mail").expect("it is there").position;
    let rest = || {
        for _ in 0..10 {
            db.core().env.machine.clock.sleep(Duration::from_secs(1));
            db.core().background.drive();
        }
    };
    table.insert("a", "1").expect("it is taken");
    mail.acknowledge(db.version()).expect("it is there");
    rest();
    assert!(stored(&db) <= db.durable_version(), "a crash may take the commit back");
    db.sync().expect("the disk works");
    rest();
    assert_eq!(stored(&db), db.version());
    assert!(!subscribe::has_more(db.core()), "nothing is left to note");
}

#[test]
fn a_limit_counts_the_tables_of_which_no_rule_keeps_the_same() {
    let (_, db, table) = with_table();
    let other = db.table("other").expect("the disk works");
    db.retain(Retention::Everything).expect("the disk works");
    other.retain(Retention::None).expect("the disk works");
    let late = db.subscribe("late", Limits::NONE.bytes(100_000)).expect("the disk works");
    for (table, lets_go) in [(&table, false), (&other, true)] {
        for round in 0..100_u8 {
            table.insert("a", vec![round; 3_000]).expect("it is taken");
        }
        db.flush().expect("the disk works");
        assert_eq!(late.has_let_go().expect("it is there"), lets_go);
    }
    // One that has let go says nothing about the next one: its files do not count.
    let next = db.subscribe("next", Limits::NONE.bytes(100_000)).expect("the disk works");
    other.insert("a", "1").expect("it is taken");
    db.flush().expect("the disk works");
    assert!(!next.has_let_go().expect("it is there"));
}

#[test]
fn a_subscription_after_a_reopen_takes_the_place_of_no_other() {
    let (disk, db, table) = with_table();
    for name in ["a", "b", "c", "d"] {
        db.subscribe(name, Limits::NONE).expect("the disk works");
    }
    // The greatest number was given, too, although it is in use no more.
    db.unsubscribe("d").expect("the disk works").expect("it was there");
    drop((table, db));
    let (db, _table) = open(&disk, 2);
    for name in ["d", "e"] {
        db.subscribe(name, Limits::NONE).expect("the disk works");
    }
    let mut names: Vec<String> = db.subscriptions().into_iter().map(|one| one.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    // A manifest in which one number has two names is damaged.
    let core = db.core();
    let files = core.views.newest().files.clone();
    let subscriber = Subscriber { name: "f".to_owned(), ..files.subscriber_named("a").expect("it is there").clone() };
    let edits = [Edit::Subscribe(subscriber)];
    core.install(&edits, FreshFiles::new(&core.env.opener.leftovers), |_| {}).expect_err("it is the number of a");
    assert_eq!(db.subscriptions().len(), 5);
}

#[test]
fn subscriptions_that_cannot_be_are_refused() {
    let (disk, db, table) = with_table();
    for name in ["", &"x".repeat(256), "a\nb"] {
        assert!(matches!(db.subscribe(name, Limits::NONE), Err(Error::BadSubscriptionName(_))), "{name:?}");
    }
    let said = db.subscription("mail").expect_err("there is none").to_string();
    assert_eq!(said, "no subscription has the name \"mail\"; the database has none");
    for number in 0..crate::base::subscription::MAX_SUBSCRIPTIONS {
        db.subscribe(&number.to_string(), Limits::NONE).expect("the disk works");
    }
    assert!(matches!(db.subscribe("one more", Limits::NONE), Err(Error::TooManySubscriptions(1_000))));
    db.subscribe("7", Limits::NONE.bytes(1)).expect("it is there already");
    for number in 2..1_000 {
        db.unsubscribe(&number.to_string()).expect("the disk works").expect("it was there");
    }
    assert!(db.unsubscribe("7").expect("the disk works").is_none());
    let said = db.subscription("mail").expect_err("there is none").to_string();
    assert_eq!(said, "no subscription has the name \"mail\"; choose from 0 and 1");
    let read_only = on(&disk, 2).read_only(true).open().expect("it opens");
    assert!(matches!(read_only.subscribe("x", Limits::NONE), Err(Error::ReadOnly)));
    assert!(matches!(read_only.unsubscribe("0"), Err(Error::ReadOnly)));
    let its = read_only.subscription("0").expect("it is there");
    assert!(matches!(its.acknowledge(Version(0)), Err(Error::ReadOnly)));
    drop((its, read_only, table, db));
    let old = |seed| on(&disk, seed).compat(Release::V0_1).open();
    let refused = old(3).expect_err("0.1 would drop what they hold").to_string();
    assert!(refused.contains("subscription") && refused.contains("0.1"), "{refused}");
    let (db, table) = open(&disk, 4);
    for name in ["0", "1"] {
        db.unsubscribe(name).expect("the disk works").expect("it was there");
    }
    drop((table, db));
    let db = old(5).expect("there is none any more");
    assert!(matches!(db.subscribe("x", Limits::NONE), Err(Error::BadOptions(_))));
}

#[test]
fn followers_and_copies_see_subscriptions_and_copies_give_up_what_they_lack() {
    let (disk, db, table) = with_table();
    let mail = db.subscribe("mail", Limits::NONE).expect("the disk works");
    let follower = on(&disk, 2).follow(Follow::Commits).open().expect("it opens");
    for number in 0..10 {
        table.insert("a", number.to_string()).expect("it is taken");
    }
    mail.acknowledge(Version(4)).expect("it is there");
    mail.sync().expect("the disk works");
    db.compact().expect("the disk works");
    follower.catch_up().expect("the disk works");
    assert_eq!(position(&follower, "mail"), 4);
    assert_eq!(given(&follower.subscription("mail").expect("it is there")).expect("all is held").len(), 6);
    table.insert("a", "10").expect("it is taken");
    db.checkpoint("copy").expect("the disk works");
    let copy = Database::builder("copy").machine(Machine::simulated_on(disk.clone(), 3)).open().expect("it opens");
    assert_eq!(position(&copy, "mail"), 4);
    assert_eq!(given(&copy.subscription("mail").expect("it is there")).expect("all is held").len(), 7);
}

#[test]
fn the_end_of_a_rule_and_of_one_subscription_leaves_the_past_to_the_others() {
    let (_, db, table) = with_table();
    db.retain(Retention::Everything).expect("the disk works");
    let rule_from = db.version();
    table.insert("a", "1").expect("it is taken");
    let first = db.subscribe("first", Limits::NONE).expect("the disk works");
    table.insert("a", "2").expect("it is taken");
    db.subscribe("second", Limits::NONE).expect("the disk works");
    table.insert("a", "3").expect("it is taken");
    assert_eq!(db.retained_from(), Some(rule_from));
    db.retain(Retention::None).expect("the disk works");
    db.compact().expect("the disk works");
    assert_eq!(db.retained_from(), Some(Version(1)));
    assert_eq!(given(&first).expect("all is held").len(), 2);
    assert!(db.time_of(Version(1)).is_some(), "times are known as long as the past is kept");
    db.unsubscribe("first").expect("the disk works").expect("it was there");
    db.compact().expect("the disk works");
    assert_eq!(db.retained_from(), Some(Version(2)));
    db.unsubscribe("second").expect("the disk works").expect("it was there");
    db.compact().expect("the disk works");
    assert_eq!((db.retained_from(), table.stats().expect("the disk works").history_rows), (None, 0));
}
