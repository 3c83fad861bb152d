//! How the files of the system are read. A test writes them into a directory of its own.

use super::RealFreeMemory;
use crate::free_memory::{FreeMemory, MemoryReading, ScopeMemory};
use crate::real::tests::Scratch;
use std::fs;
use std::time::Duration;

const MIB: u64 = 1 << 20;

const MEMINFO: &str = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n";

const MACHINE: ScopeMemory =
    ScopeMemory { total_bytes: 16_384 * MIB, available_bytes: 8_192 * MIB, free_bytes: 1_024 * MIB };

/// What is read of a system that has these files.
fn reading(files: &[(&str, &str)]) -> Option<MemoryReading> {
    let scratch = Scratch::new("free-memory");
    for (name, text) in files {
        let path = scratch.path(name);
        fs::create_dir_all(path.parent().expect("the file is in a directory")).expect("the directory can be made");
        fs::write(path, text).expect("the file can be written");
    }
    RealFreeMemory { root: scratch.path("") }.read()
}

/// What is read of the control groups of a system with [`MEMINFO`] and these files.
fn groups(files: &[(&str, &str)]) -> Vec<ScopeMemory> {
    let files: Vec<_> = files.iter().copied().chain([("proc/meminfo", MEMINFO)]).collect();
    let scopes = reading(&files).expect("the machine can be read").scopes;
    assert_eq!(scopes[0], MACHINE);
    scopes[1..].to_vec()
}

fn group(total_mib: u64, available_mib: u64, free_mib: u64) -> ScopeMemory {
    ScopeMemory { total_bytes: total_mib * MIB, available_bytes: available_mib * MIB, free_bytes: free_mib * MIB }
}

#[test]
fn the_machine_says_what_is_free_and_how_long_threads_have_waited() {
    let pressure = "some avg10=1.00 avg60=0.00 avg300=0.00 total=2500\nfull avg10=0.00 total=7\n";
    let stalled = |files: &[(&str, &str)]| reading(files).expect("the machine can be read");
    let all = stalled(&[("proc/meminfo", MEMINFO), ("proc/pressure/memory", pressure)]);
    let (stalled_for, swapped_bytes) = (Duration::from_micros(2500), 0);
    assert_eq!(all, MemoryReading { scopes: vec![MACHINE], stalled: stalled_for, swapped_bytes });
    let status = "Name:\tlarch\nVmRSS:\t    9000 kB\nVmSwap:\t    2048 kB\nThreads:\t1\n";
    assert_eq!(stalled(&[("proc/meminfo", MEMINFO), ("proc/self/status", status)]).swapped_bytes, 2 * MIB);
    for unknown in ["", "some\n", "some total=many\n", "full total=7\n"] {
        let files = [("proc/meminfo", MEMINFO), ("proc/pressure/memory", unknown)];
        assert_eq!(stalled(&files).stalled, Duration::ZERO, "{unknown:?}");
    }
    assert_eq!(stalled(&[("proc/meminfo", MEMINFO)]).stalled, Duration::ZERO);
}

#[test]
fn a_machine_that_does_not_say_what_is_free_has_no_reading() {
    assert_eq!(reading(&[]), None);
    for bad in [
        "",
        "MemTotal: 1 kB\nMemFree: 1 kB\n",
        "MemTotal: 1 kB\nMemFree: 1 kB\nMemAvailable: 1\n",
        "MemTotal: 1 kB\nMemFree: -1 kB\nMemAvailable: 1 kB\n",
        "MemTotal: much kB\nMemFree: 1 kB\nMemAvailable: 1 kB\n",
        "MemTotal: 18446744073709551615 kB\nMemFree: 1 kB\nMemAvailable: 1 kB\n",
    ] {
        assert_eq!(reading(&[("proc/meminfo", bad)]), None, "{bad:?}");
    }
}

#[test]
fn every_group_above_the_process_bounds_it() {
    let stat = "anon 1\ninactive_file 104857600\nactive_file 52428800\nfile_dirty 20971520\nfile_writeback 0\n";
    let files = [
        ("proc/self/cgroup", "0::/shop/db\n"),
        ("sys/fs/cgroup/shop/db/memory.max", "max\n"),
        ("sys/fs/cgroup/shop/db/memory.high", "1073741824\n"),
        ("sys/fs/cgroup/shop/db/memory.current", "838860800\n"),
        ("sys/fs/cgroup/shop/db/memory.stat", stat),
        ("sys/fs/cgroup/shop/memory.max", "4294967296\n"),
        ("sys/fs/cgroup/shop/memory.high", "max\n"),
        ("sys/fs/cgroup/shop/memory.current", "1073741824\n"),
        // The root of all groups has no limit.
        ("sys/fs/cgroup/memory.stat", stat),
    ];
    // 224 MiB are free, and of 150 MiB of cached files, 20 MiB have to be written first.
    assert_eq!(groups(&files), [group(1024, 224 + 130, 224), group(4096, 3072, 3072)]);
}

#[test]
fn the_lower_of_two_limits_counts() {
    for (max, high, expected) in [("max", "max", None), ("2097152", "max", Some(2)), ("3145728", "2097152", Some(2))] {
        let files = [
            ("proc/self/cgroup", "0::/db\n"),
            ("sys/fs/cgroup/db/memory.max", max),
            ("sys/fs/cgroup/db/memory.high", high),
            ("sys/fs/cgroup/db/memory.current", "0"),
        ];
        let expected: Vec<_> = expected.map(|mib| group(mib, mib, mib)).into_iter().collect();
        assert_eq!(groups(&files), expected, "{max} {high}");
    }
}

#[test]
fn groups_of_version_1_are_read_by_their_own_names() {
    let stat = "inactive_file 7\ntotal_inactive_file 104857600\ntotal_active_file 0\ntotal_dirty 0\n";
    let files = [
        ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/shop/db\n0::/\n"),
        ("sys/fs/cgroup/memory/shop/db/memory.limit_in_bytes", "1073741824\n"),
        ("sys/fs/cgroup/memory/shop/db/memory.usage_in_bytes", "1073741824\n"),
        ("sys/fs/cgroup/memory/shop/db/memory.stat", stat),
        ("sys/fs/cgroup/memory/shop/memory.limit_in_bytes", "9223372036854771712\n"),
    ];
    assert_eq!(groups(&files), [group(1024, 100, 0)]);
}

#[test]
fn in_a_container_the_group_at_the_mount_counts() {
    for path in ["0::/", "0::/../../host/db", "0::/docker/4711"] {
        let files = [
            ("proc/self/cgroup", path),
            ("sys/fs/cgroup/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/memory.current", "1048576\n"),
        ];
        assert_eq!(groups(&files), [group(1024, 1023, 1023)], "{path}");
    }
}

#[test]
fn a_group_whose_use_is_not_known_has_nothing_free() {
    for used in [None, Some(""), Some("much"), Some("-1")] {
        let mut files = vec![("proc/self/cgroup", "0::/db\n"), ("sys/fs/cgroup/db/memory.max", "1073741824\n")];
        files.extend(used.map(|used| ("sys/fs/cgroup/db/memory.current", used)));
        assert_eq!(groups(&files), [group(1024, 0, 0)], "{used:?}");
    }
}

#[test]
fn lines_that_are_no_groups_and_limits_that_are_no_numbers_are_passed_over() {
    for (line, limit) in [("", "1048576"), ("0", "1048576"), ("0:", "1048576"), ("0::/db", "-5"), ("0::/db", "")] {
        let files = [("proc/self/cgroup", line), ("sys/fs/cgroup/db/memory.max", limit)];
        assert_eq!(groups(&files), [], "{line:?} {limit:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "reads /proc")]
fn this_machine_has_memory() {
    let reading = RealFreeMemory::new().read().expect("Linux says what is free");
    for scope in reading.scopes {
        assert!(scope.total_bytes > 0 && scope.available_bytes <= scope.total_bytes, "{scope:?}");
    }
}
