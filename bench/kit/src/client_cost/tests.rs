//! Times of processes, and the figures that are computed from them.

use super::*;
use std::process::{Command, Stdio};

#[test]
fn processor_time_is_read_after_any_name() {
    let stat = "4242 (a) b (c)) Z 1 4242 4242 0 -1 4194304 1500 0 0 0 32 127 0 0 20 0 1 0 99 0 0";
    assert_eq!(processor_time_of(stat), Some(Duration::from_millis(1_590)));
    assert_eq!(processor_time_of("4242 (x) Z 1"), None);
}

#[test]
fn the_time_of_a_process_is_there_before_it_is_waited_for() {
    let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3";
    let child = Command::new("/bin/sh").args(["-c", count]).stdin(Stdio::null()).spawn();
    let mut child = child.expect("there is a shell");
    let time = processor_time_at_end(&child).expect("it has ended");
    assert!(!time.is_zero(), "it counted to 200,000");
    assert_eq!(child.wait().expect("it is our child").code(), Some(3));
}

#[test]
fn a_ratio_is_that_of_medians() {
    let run = |operations| Run { operations, processor: Duration::from_secs(1), time: Duration::from_secs(2) };
    let sides = Sides { ours: vec![run(90), run(220), run(1_000)], theirs: vec![run(100), run(120)] };
    assert_eq!(sides.ratio(), 2.0);
    assert_eq!(run(500_000).processor_seconds_per_million(), 2.0);
    assert_eq!(run(500_000).per_second(), 250_000.0);
}
