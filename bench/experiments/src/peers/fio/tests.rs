use super::{arguments, options, parse};
use crate::peers::orders::{Fill, Operate, Task};
use harness::Target;

/// Output of fio 3.33, without the fields that are not read.
const REPORT: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{
  "fio version" : "fio-3.33",
  "jobs" : [
    {
      "jobname" : "reads",
      "error" : 0,
      "read" : {
        "io_bytes" : 403652608,
        "iops" : 24532.402792,
        "runtime" : 1003,
        "total_ios" : 24606,
        "clat_ns" : { "mean" : 1297036.777489, "percentile" : { "50.000000" : 700416, "99.000000" : 8028160 } }
      },
      "write" : { "total_ios" : 0 },
      "job_runtime" : 1002,
      "usr_cpu" : 2.295409,
      "sys_cpu" : 13.073852
    }
  ]
}
"#;

#[test]
fn a_report_of_fio_is_a_sample() {
    let sample = parse(REPORT).expect("it is whole");
    assert_eq!((sample.operations, sample.nanos, sample.p99_nanos), (24_606, 1_003_000_000, Some(8_028_160)));
    assert_eq!((sample.disk_reads, sample.window_read_bytes), (Some(24_606), 403_652_608));
    let few = parse(&REPORT.replace("24606", "999")).expect("it is whole");
    assert_eq!(few.p99_nanos, None, "too few reads for a 99th percentile");
    // 15.37 % of 1.002 s.
    assert_eq!(sample.cpu_nanos / 1_000, 153_999);
}

#[test]
fn what_is_no_measurement_is_told() {
    let check = |from: &str, to: &str, why: &str| {
        let error = parse(&REPORT.replace(from, to)).expect_err(why);
        assert!(error.contains(why), "{error}");
    };
    check("\"error\" : 0", "\"error\" : 95", "error 95");
    check("\"total_ios\" : 24606", "\"total_ios\" : 0", "read nothing");
    check("\"usr_cpu\"", "\"other\"", "usr_cpu");
    assert!(parse("fio: engine io_uring not loadable").is_err());
}

#[test]
fn fio_reads_as_the_engine_beside_it() {
    let said = |query: &str, task: Task, engine: &str| {
        let target = Target::parse(&format!("fio:/a:b{query}")).expect("a target");
        let options = options(&target).expect("its options");
        let measure = Operate {
            task,
            records: 0,
            filled: Fill::Sorted,
            threads: 8,
            warmup_millis: 300,
            millis: 2_000,
            operations: None,
            seed: 7,
            hot_share: None,
            beside: None,
        };
        arguments(&options, &measure, engine).join(" ")
    };
    let gets = Task::Workload { name: "c".to_owned(), keys: "uniform".to_owned() };
    let has = |line: &str, parts: &[&str]| assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    let line = said("?page=4KiB", gets.clone(), "psync");
    has(
        &line,
        &["--filename=/a\\:b/blocks ", "--rw=randread --bs=4096", "--iodepth=1 --numjobs=8", "--runtime=2000ms"],
    );
    has(&said("?flights=1", gets, "libaio"), &["--bs=16384 --ioengine=libaio --iodepth=8 --numjobs=1"]);
    has(&said("?ahead=8MiB", Task::Scan, "io_uring"), &["--rw=read --bs=262144", "--iodepth=32 --numjobs=1"]);
}
