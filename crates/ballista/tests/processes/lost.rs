//! Tests in which an executor is killed or paused while it works on a query. The query must be begun again with
//! the remaining executors, or it must end with an error that says why. The query must not hang, and no row may
//! come twice in its answer. `docs/scale.md` says how long a query takes in these cases.

use crate::answers::{alone, ask_with, filled};
use crate::cluster::{Cluster, answered, larch};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The longest time for which a test waits. This time is several times as long as the times in `docs/scale.md`, so
/// only a query that hangs takes so long.
const PATIENCE: Duration = Duration::from_secs(400);

/// A join whose answer is one row. Two stages read the two sides and exchange their rows between the executors. A
/// third stage joins the rows.
const QUERY: &str = "SELECT count(*) AS n, sum(a.amount + b.amount) AS s FROM orders a JOIN orders b \
    ON a.shop = b.shop AND a.id / 1000 = b.id / 1000";

/// Settings with which the rows of both sides are exchanged, and no side is sent to all executors.
const EXCHANGED: &str = "SET datafusion.optimizer.hash_join_single_partition_threshold = 0; \
    SET datafusion.optimizer.hash_join_single_partition_threshold_rows = 0; \
    SET ballista.optimizer.broadcast_join_threshold_bytes = 1; ";

fn begin(cluster: &Cluster, database: &Path) -> Child {
    let mut command = ask_with(cluster, database, &format!("{EXCHANGED}{QUERY}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Waits until `executor` has written the files of at least `partitions` partitions in `stage`. Panics if the query
/// ends before this.
fn until(cluster: &Cluster, executor: usize, stage: &str, partitions: usize, query: &mut Child) {
    let is_of_stage = |path: &std::path::PathBuf| path.iter().rev().nth(2).is_some_and(|name| name == stage);
    while cluster.written(executor).iter().filter(|path| is_of_stage(path)).count() < partitions {
        let ended = query.try_wait().expect("it can be asked");
        assert!(ended.is_none(), "the query has ended before an executor was lost");
        std::thread::yield_now();
    }
}

/// The output of a query at its end. Fails if the query does not end.
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
    // The other executor has joined the rows of some partitions. To join the rows of more partitions, it needs
    // rows from the executor that is killed next.
    until(&cluster, 1, "3", 2, &mut query);
    cluster.executors[0].kill();
    assert_eq!(answered(&end(query)), expected);
    // The next query works without the killed executor.
    assert_eq!(answered(&end(begin(&cluster, &directory))), expected);
    // When no executor is left, the query ends with an error and does not wait forever.
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
    // One more query is asked while the executor is paused, and another one after the executor has gone on.
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
        // This executor finds no scheduler. Therefore the executor ends and removes its own directory.
        let mut next = larch(&["sql-executor", "--scheduler", "127.0.0.1:1"]);
        let output = next.env("TMPDIR", cluster.scratch(executor)).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!([0, 1].map(directories), [0, 1], "the one that lives keeps its own");
}
