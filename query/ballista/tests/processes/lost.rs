//! Executors are killed or paused while they work on a query. The query must begin again with the remaining
//! executors, or end with an error that says why. It must not hang, and no row may come twice. `docs/scale.md` says
//! how long a query takes in these cases.

use crate::answers::{alone, ask_with, filled};
use crate::cluster::{Cluster, answered, larch};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long a test waits: several times as long as the times in `docs/scale.md`, so only a query that hangs takes
/// longer.
const PATIENCE: Duration = Duration::from_secs(400);

/// A join whose answer is one row. Two stages read the sides and exchange their rows between the executors, and a
/// third one joins them.
const QUERY: &str = "SELECT count(*) AS n, sum(a.amount + b.amount) AS s FROM orders a JOIN orders b \
    ON a.shop = b.shop AND a.id / 1000 = b.id / 1000";

/// Settings that make both sides exchange their rows, so that no side is sent to all executors.
const EXCHANGED: &str = "SET datafusion.optimizer.hash_join_single_partition_threshold = 0; \
    SET datafusion.optimizer.hash_join_single_partition_threshold_rows = 0; \
    SET ballista.optimizer.broadcast_join_threshold_bytes = 1; ";

fn begin(cluster: &Cluster, database: &Path) -> Child {
    let mut command = ask_with(cluster, database, &format!("{EXCHANGED}{QUERY}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Waits until `executor` has written at least `partitions` partitions of `stage`. Panics if the query ends before.
fn until(cluster: &Cluster, executor: usize, stage: &str, partitions: usize, query: &mut Child) {
    let is_of_stage = |path: &std::path::PathBuf| path.iter().rev().nth(2).is_some_and(|name| name == stage);
    while cluster.written(executor).iter().filter(|path| is_of_stage(path)).count() < partitions {
        let ended = query.try_wait().expect("it can be asked");
        assert!(ended.is_none(), "the query has ended before an executor was lost");
        std::thread::yield_now();
    }
}

/// The output of a query that must end in time.
fn end(query: Child) -> Output {
    let id = query.id().to_string();
    let (done, ended) = channel();
    let waiting = std::thread::spawn(move || done.send(query.wait_with_output().expect("it can be read")));
    let output = ended.recv_timeout(PATIENCE);
    if matches!(output, Err(RecvTimeoutError::Timeout)) {
        std::process::Command::new("kill").args(["-KILL", &id]).status().expect("the program starts");
    }
    waiting.join().expect("it does not panic").ok();
    output.unwrap_or_else(|_| panic!("the query hangs after an executor was lost"))
}

#[test]
fn a_query_has_its_answer_although_an_executor_is_killed_whose_rows_others_have_read_in_part() {
    let (_scratch, directory) = filled("ballista-killed");
    let expected = alone(&directory, QUERY);
    let mut cluster = Cluster::start();
    let mut query = begin(&cluster, &directory);
    // The other executor has joined some partitions. For the rest, it needs rows of the executor that is killed now.
    until(&cluster, 1, "3", 2, &mut query);
    cluster.executors[0].kill();
    assert_eq!(answered(&end(query)), expected);
    // The next query works without the killed executor.
    assert_eq!(answered(&end(begin(&cluster, &directory))), expected);
    // With no executor left, the query ends with an error and does not wait forever.
    let mut query = begin(&cluster, &directory);
    until(&cluster, 1, "1", 1, &mut query);
    cluster.executors[1].kill();
    let output = end(query);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("were lost while they did so, or there is none"), "{told}");
}

#[test]
fn a_query_has_its_answer_although_an_executor_is_paused() {
    let (_scratch, directory) = filled("ballista-paused");
    let expected = alone(&directory, QUERY);
    let cluster = Cluster::start();
    let mut query = begin(&cluster, &directory);
    until(&cluster, 0, "1", 1, &mut query);
    cluster.executors[0].signal("STOP");
    assert_eq!(answered(&end(query)), expected);
    // Asks again while the executor is paused, and after it has gone on.
    assert_eq!(answered(&end(begin(&cluster, &directory))), expected);
    cluster.executors[0].signal("CONT");
    assert_eq!(answered(&end(begin(&cluster, &directory))), expected);
}

#[test]
fn an_executor_that_is_killed_leaves_no_files_once_another_one_has_started() {
    let mut cluster = Cluster::start();
    cluster.executors[0].kill();
    let directories = |executor: usize| std::fs::read_dir(cluster.scratch(executor)).expect("it is there").count();
    assert_eq!([0, 1].map(directories), [1, 1]);
    for executor in [0, 1] {
        // This executor finds no scheduler, so it ends and removes its own directory.
        let mut next = larch(&["sql-executor", "--scheduler", "127.0.0.1:1"]);
        let output = next.env("TMPDIR", cluster.scratch(executor)).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!([0, 1].map(directories), [0, 1], "the one that lives keeps its own");
}
