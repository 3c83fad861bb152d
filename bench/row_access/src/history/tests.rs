use super::*;

fn job() -> Job {
    Job {
        job_id: 4601,
        start_time: Timestamp(1_627_616_419_521_098),
        end_time: Some(Timestamp(1_627_617_019_531_789)),
        num_batches: Some(115_571),
        num_rows: Some(8_579_921),
        pct_update: 10,
        max_scratch: Some(10_000_008),
        prepared: true,
        index_only: false,
        tab_rows: 1_000_000,
        batch_size: 75,
        table_name: "bench0001".to_owned(),
        table_rows: None,
        table_scratch: None,
        comments: None,
    }
}

#[test]
fn a_result_of_the_document_is_printed_as_there() {
    let going_on = Job { job_id: 4701, end_time: None, num_batches: None, num_rows: None, max_scratch: None, ..job() };
    let text = table(&[going_on, job()]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].trim_start().starts_with("duration     | riops | pct_scratch | coverage | job_id |"), "{text}");
    assert!(
        lines[2].starts_with(&format!(
            " {:15} | {:5} | {:11} | {:8} |   4701 | 2021-07-30 03:40:19.521098 |",
            "", "", "", ""
        ))
    );
    assert!(
        lines[3].starts_with(" 00:10:00.010691 | 14300 |             |          |   4601 | 2021-07-30 03:40:19.521098"),
        "{text}"
    );
    assert!(
        lines[3].contains("|      115571 |  8579921 |         10 |    10000008 | t        | f          |  1000000 |"),
        "{text}"
    );
    assert_eq!(lines[4], "(2 rows)");
}

#[test]
fn coverage_is_a_share_or_how_often() {
    let counted = |read, all| Job { num_rows: Some(read), table_rows: Some(all), ..job() }.coverage();
    assert_eq!(counted(450, 1000).as_deref(), Some("  45 %"));
    assert_eq!(counted(1000, 1000).as_deref(), Some(" 100 %"));
    assert_eq!(counted(2500, 1000).as_deref(), Some("  x2.5"));
    assert_eq!(counted(1, 0), None);
    let job = Job { max_scratch: Some(990), table_scratch: Some(1000), ..job() };
    assert_eq!(job.pct_scratch(), Some(99));
}
