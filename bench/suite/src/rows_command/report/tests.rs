use super::*;
use kit::time::Timestamp;

/// A report of two sessions.
fn report() -> Report {
    let session = |number: i64| {
        let mut times = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
        (0..3_000).for_each(|at| times.record(1_000_000 + 777 * at * number.unsigned_abs()).expect("it grows"));
        let job = Job {
            job_id: 41 + number,
            start_time: Timestamp(1_700_000_000_000_000),
            end_time: Some(Timestamp(1_700_000_013_579_000 + number)),
            num_batches: Some(3_000),
            num_rows: Some(300_000 + number),
            pct_update: 10,
            max_scratch: Some(12_345),
            prepared: true,
            index_only: false,
            tab_rows: 1_000_000,
            batch_size: 100,
            table_name: "bench0001".to_owned(),
            table_rows: Some(1_000_003),
            table_scratch: Some(54_321),
            comments: None,
        };
        let times = Times::from_hdr(&times);
        SessionReport::new(&Ran { job, times, updated: 30_001, repeated: 7 * number.unsigned_abs(), missing: 11 })
    };
    let report = Report {
        format: FORMAT.to_owned(),
        version: VERSION,
        environment: Environment::default(),
        target: "larch:db".to_owned(),
        settings: Vec::new(),
        compat: false,
        in_server: false,
        seed: 1,
        share: None,
        sessions: vec![session(1), session(2)],
        rows: 0,
        seconds: 0.0,
        rows_per_second: 0.0,
        page_reads: Some(98_765),
        page_reads_per_second: None,
        price: Some(0.05),
        million: Million::default(),
        cost: Cost { user_nanos: 7_000_000_000, ..Cost::default() },
        access_path: "read of keys 5 to 104".to_owned(),
    };
    report.summed()
}

#[test]
fn files_and_page_have_every_number_of_the_text() {
    let report = report();
    let text = report.text();
    // The dates of the history are texts in all of them.
    let told: Vec<&str> = text.lines().filter(|line| !line.contains(" | ") && !line.starts_with('(')).collect();
    let json: serde_json::Value = serde_json::from_str(&report.json()).expect("it is JSON");
    let table = csv::csv([&report.run()]);
    let page = crate::report_page::page(&[("a".to_owned(), report.whole())], None).html();
    results::tests::check_outputs(&told.join("\n"), &json, &table, &page);
    for job in report.sessions.iter().map(|session| &session.job) {
        for (name, cell) in history::cells(job) {
            let cell = cell.trim();
            assert!(table.contains(cell) && page.contains(cell) && report.json().contains(cell), "{name}: {cell}");
        }
    }
}

#[test]
fn a_report_comes_back_from_its_file_and_counts_what_was_retried() {
    let report = report();
    let read = Report::parse(&report.json()).expect("it is one");
    assert_eq!(read.text(), report.text());
    assert!(
        read.text().contains("batches: 21 retries because another session was in the way, 0 rolled back, 0 failed")
    );
}
