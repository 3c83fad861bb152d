//! Tests of the text about a table.

use super::*;
use larch::stats::GroupStats;

fn printed(stats: &TableStats) -> String {
    let mut text = String::new();
    let mut add = |line: String| {
        text.push_str(&line);
        text.push('\n');
        Ok(())
    };
    print(&told(stats), &mut add).expect("nothing is written to a disk");
    text
}

/// What `stats` prints about a table whose rows are all in files, with one version of each row.
fn told(stats: &TableStats) -> Stats {
    let mut all = RangeStats::default();
    (all.rows.low, all.rows.high) = (stats.rows, stats.rows);
    Stats::new("t", stats, &all)
}

fn stats() -> TableStats {
    let mut stats = TableStats::default();
    (stats.rows, stats.user_bytes, stats.data_pages, stats.data_bytes) = (7, 70, 2, 2048);
    (stats.index_bytes, stats.btree_bytes, stats.index_height) = (512, 512, 1);
    (stats.files, stats.file_bytes) = (1, 8192);
    stats
}

#[test]
fn a_whole_table_out_of_memory_is_said_in_few_lines() {
    let expected = "\
table t
  rows          7, 70 B of keys and values
  data          2.0 KiB in 2 pages
  index         512 B (25.000 % of data), 1 level
  files         1, 8.0 KiB
";
    assert_eq!(printed(&stats()), expected);
}

#[test]
fn groups_and_memory_are_said_where_there_are_some() {
    let mut stats = stats();
    let group = |name: &str, data_bytes, history_bytes| GroupStats { name: name.to_owned(), data_bytes, history_bytes };
    stats.groups = vec![group("hot", 2048, 1024), group("cold", 6144, 0)];
    (stats.group_bytes, stats.group_history_bytes) = (6144, 1024);
    (stats.history_rows, stats.history_bytes) = (3, 1024);
    (stats.cached_index_bytes, stats.cached_history_bytes) = (600, 1024);
    let expected = "\
table t
  rows          7, 70 B of keys and values
  data          8.0 KiB in 2 groups
    group       hot: 2.0 KiB, history 1.0 KiB
    group       cold: 6.0 KiB
  index         512 B (6.250 % of data), 1 level
  history       2.0 KiB, 3 older versions
  files         1, 8.0 KiB
  in memory     index 600 B, history 1.0 KiB
";
    assert_eq!(printed(&stats), expected);
    let json = serde_json::to_string(&told(&stats)).expect("a report is plain JSON");
    for part in [
        "\"group_bytes\":6144,\"group_history_bytes\":1024,",
        "\"groups\":[{\"name\":\"hot\",\"data_bytes\":2048,\"history_bytes\":1024},{\"name\":\"cold\",",
        "\"filter_bytes\":0,",
        "\"cached_index_bytes\":600,\"cached_data_bytes\":0,\"cached_history_bytes\":1024,\"cached_filter_bytes\":0}",
    ] {
        assert!(json.contains(part), "{part}: {json}");
    }
}
