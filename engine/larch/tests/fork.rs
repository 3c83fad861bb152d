//! Tests that a process that forks after it has opened a database can still use it, and that the child gets an error
//! from every call and does not harm the database.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "a fork")]

use larch::{Builder, Database, Error};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use os::sync::atomic::{AtomicBool, Ordering};
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[test]
fn a_forked_child_is_refused_and_leaves_the_database_as_it_is() {
    let directory = tempfile::tempdir().expect("the system has room");
    let db = Database::open(&directory).expect("it opens");
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    let temporary = Builder::temporary().open().expect("it opens");
    let in_temporary = temporary.table("t").expect("the disk works");
    in_temporary.insert("a", "1").expect("the disk works");
    let mut import = table.import().expect("the disk works");
    import.add(b"b", b"2").expect("the disk works");
    let mut submitted = db.batch();
    submitted.insert(&table, "a", "1");
    let mut commit = submitted.submit().expect("the disk works");
    // SAFETY: until it exits, the child only makes calls of Larch and allocates memory. Larch promises that these
    // calls take no lock that another thread may have held during the fork. The C library allows a child to
    // allocate.
    match unsafe { fork() }.expect("the system forks") {
        ForkResult::Child => {
            let is_refused = |outcome: Result<(), Error>| matches!(outcome, Err(Error::Forked));
            let mut refused = is_refused(table.insert("c", "3"));
            refused &= is_refused(db.batch().commit().map(drop));
            refused &= is_refused(db.flush());
            refused &= is_refused(commit.wait().map(drop));
            let polled = Pin::new(&mut commit).poll(&mut Context::from_waker(Waker::noop()));
            refused &= matches!(polled, Poll::Ready(Err(Error::Forked)));
            let was_called = Arc::new(AtomicBool::new(false));
            let called = was_called.clone();
            commit.on_durable(move |outcome| called.store(is_refused(outcome.map(drop)), Ordering::Relaxed));
            refused &= was_called.load(Ordering::Relaxed);
            refused &= is_refused(db.table("u").map(drop));
            refused &= is_refused(db.drop_table("t").map(drop));
            refused &= is_refused(table.alter(|options| options.metadata = vec![1]));
            refused &= is_refused(table.clone_as("v").map(drop));
            // In the child, these drops write nothing, remove no file, and do not wait for threads, which the child
            // does not have.
            drop((import, table, db, in_temporary, temporary));
            // SAFETY: no code of the parent may run when the child ends.
            unsafe { nix::libc::_exit(i32::from(!refused)) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).expect("it is our child"), WaitStatus::Exited(child, 0));
        }
    }
    table.insert("d", "4").expect("the parent writes on");
    in_temporary.insert("b", "2").expect("the child has not removed the temporary directory");
    temporary.flush().expect("the child has not removed the temporary directory");
    commit.wait().expect("the parent has its threads");
    drop(commit);
    import.finish(|_| {}).expect("the child has removed nothing");
    db.flush().expect("the disk works");
    drop((table, db));
    let db = Database::open(&directory).expect("it opens");
    let keys: Vec<_> =
        db.table("t").expect("it is there").iter().map(|row| row.expect("it reads").0.to_vec()).collect();
    assert_eq!(keys, [b"a", b"b", b"d"]);
}

#[test]
fn a_forked_child_that_stays_does_not_keep_the_database_locked() {
    let directory = tempfile::tempdir().expect("the system has room");
    let db = Database::open(&directory).expect("it opens");
    let (mut end, stay) = std::io::pipe().expect("the system has room");
    // SAFETY: until it exits, the child only reads from a pipe.
    match unsafe { fork() }.expect("the system forks") {
        ForkResult::Child => {
            drop(stay);
            end.read_exact(&mut [0]).ok();
            // SAFETY: no code of the parent may run when the child ends.
            unsafe { nix::libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop(db);
            let again = Database::open(&directory);
            drop(stay);
            assert_eq!(waitpid(child, None).expect("it is our child"), WaitStatus::Exited(child, 0));
            again.expect("the parent has closed it");
        }
    }
}
