//! How the reports of the system are read.

use super::{Cpu, ProcessMemory, cpu, memory, parse_cpu, parse_memory, parse_wait, waited_for_processor};
use std::time::Duration;

#[test]
fn memory_is_read_from_the_report_of_the_system() {
    let status = "Name:\tRssAnon: 1 kB\nVmHWM:\t    2048 kB\nVmRSS:\t      12 kB\nRssAnon:\t       8 kB\nThreads:\t1\n";
    assert_eq!(
        parse_memory(status),
        ProcessMemory {
            anonymous_bytes: Some(8 * 1024),
            resident_bytes: Some(12 * 1024),
            peak_resident_bytes: Some(2048 * 1024),
        }
    );
    assert_eq!(parse_memory("VmRSS:\tmuch\n"), ProcessMemory::default());
}

#[test]
fn processor_time_is_read_past_any_process_name() {
    let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0";
    let expected = Cpu { user: Duration::from_millis(2500), system: Duration::from_millis(500) };
    assert_eq!(parse_cpu(stat, 100), Some(expected));
    assert_eq!(parse_cpu("7 (a) S 1", 100), None);
}

#[test]
fn the_wait_of_a_thread_is_the_second_number() {
    assert_eq!(parse_wait("1200 345 6\n"), Some(Duration::from_nanos(345)));
    assert_eq!(parse_wait("1200"), None);
    assert_eq!(parse_wait("1200 much 6"), None);
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "reads /proc")]
fn the_wait_of_this_thread_only_grows() {
    let before = waited_for_processor().expect("the system reports it");
    std::thread::yield_now();
    assert!(waited_for_processor() >= Some(before));
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "reads /proc")]
fn this_process_has_memory_and_time() {
    let memory = memory();
    assert!(memory.anonymous_bytes > Some(0));
    assert!(memory.resident_bytes >= memory.anonymous_bytes);
    assert!(memory.peak_resident_bytes >= memory.resident_bytes);
    assert!(cpu().is_some());
}
