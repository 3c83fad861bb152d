//! Tests which options are refused, the messages that say what to do, and the encoded bytes of options.

use super::*;

fn split(groups: &[&str]) -> TableOptions {
    TableOptions { groups: groups.iter().map(|&name| name.to_owned()).collect(), ..TableOptions::default() }
}

#[track_caller]
fn check(groups: &[&str], expected: &str) {
    let options = split(groups);
    let error = options.check().expect_err("it is refused");
    assert_eq!(error.to_string(), format!("the options cannot be used: {expected}"));
    let mut bytes = Vec::new();
    options.encode(&mut bytes);
    let decoded = TableOptions::decode(&mut bytes.as_slice());
    assert!(matches!(decoded, Err(Unreadable::Corrupt(_))), "what cannot be made cannot be read");
}

#[test]
fn groups_that_cannot_be_used_are_refused() {
    let names: Vec<String> = (0..17).map(|i| format!("g{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    check(&names, "17 column groups are more than 16; put columns that are read together in one group");
    check(&["hot", "cold", "hot"], "two column groups are named hot; give each a name of its own");
    let long = "x".repeat(65);
    for name in ["", "a b", "a,b", "a/b", "größe", "a\0", &long] {
        let rule = "write 1 to 64 letters (a to z), digits, _, - and .";
        check(&["hot", name], &format!("a column group cannot be named {name:?}; {rule}"));
    }
}

#[test]
fn groups_come_back_in_order() {
    let names: Vec<String> = (0..16).map(|i| format!("{i:x}{}", "-_.Zz9".repeat(10))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for groups in [&[][..], &["hot"], &["hot", "cold", "Hot"], &names] {
        let options = split(groups);
        options.check().expect("the rules allow it");
        let mut bytes = Vec::new();
        options.encode(&mut bytes);
        for end in 0..bytes.len() {
            assert!(TableOptions::decode(&mut &bytes[..end]).is_err(), "cut at {end}");
        }
        assert_eq!(TableOptions::decode(&mut bytes.as_slice()), Ok(options));
    }
}

#[test]
fn filters_come_back_and_have_names() {
    let mut names = Vec::new();
    for upper in FilterKind::ALL {
        for deepest in FilterKind::ALL {
            let filters = Filters { upper, deepest };
            let options = TableOptions { filters, filter_prefix_bytes: 1024, ..TableOptions::default() };
            let mut bytes = Vec::new();
            options.encode(&mut bytes);
            assert_eq!(TableOptions::decode(&mut bytes.as_slice()), Ok(options));
            names.push(filters.to_string());
            // Any other number means a filter of a later release.
            let at = bytes.len() - 3;
            for number in [3, 7, 11, 12, 15, 19, 32, 127] {
                bytes[at] = number;
                let newer = Unreadable::Newer(format!("filter {number}"));
                assert_eq!(TableOptions::decode(&mut bytes.as_slice()), Err(newer));
            }
        }
    }
    assert_eq!(names, ["none", "none,12", "none,20", "12,none", "12", "12,20", "20,none", "20,12", "20"]);
    let error = TableOptions { filter_prefix_bytes: 1025, ..TableOptions::default() }.check();
    let expected = "the options cannot be used: a prefix of 1025 bytes in filters is more than 1024";
    assert_eq!(error.expect_err("it is refused").to_string(), expected);
}

#[test]
fn the_times_of_rows_come_back_and_a_later_option_is_refused_by_name() {
    let expiries = [Expiry::Never, Expiry::After(std::time::Duration::from_millis(1500)), Expiry::By(b"d".to_vec())];
    for expiry in expiries {
        let options = TableOptions { expiry, ..TableOptions::default() };
        let mut bytes = Vec::new();
        options.encode(&mut bytes);
        assert_eq!(TableOptions::decode_whole(&bytes), Ok(options.clone()));
        let optional = [&bytes[..], &[130, 1, 7]].concat();
        assert_eq!(TableOptions::decode_whole(&optional), Ok(options.clone()));
        let required = [&bytes[..], &[3, 1, 7]].concat();
        assert_eq!(TableOptions::decode_whole(&required), Err(Unreadable::Newer("option 3".to_owned())));
        let twice = [&bytes[..], &[2, 1, 7, 2, 1, 7]].concat();
        assert!(matches!(TableOptions::decode_whole(&twice), Err(Unreadable::Corrupt(_))));
        let nothing = [&bytes[..], &[2, 0]].concat();
        assert!(matches!(TableOptions::decode_whole(&nothing), Err(Unreadable::Corrupt(_))));
    }
}

#[test]
fn metadata_times_and_where_pages_stay_have_no_part_in_how_files_are_written() {
    let usual = TableOptions::default();
    assert!(usual.writes_like(&TableOptions { in_memory: true, ..usual.clone() }));
    assert!(usual.writes_like(&TableOptions { metadata: b"m".to_vec(), ..usual.clone() }));
    assert!(usual.writes_like(&TableOptions { expiry: Expiry::By(b"d".to_vec()), ..usual.clone() }));
    for other in [
        TableOptions { page_bytes: 512, ..usual.clone() },
        TableOptions { node_bytes: 512, ..usual.clone() },
        TableOptions { index: PageIndexKind::Flat, ..usual.clone() },
        TableOptions { compression: Compression::Lz4, ..usual.clone() },
        TableOptions { compression: Compression::Zstd { level: 4 }, ..usual.clone() },
        TableOptions { filters: Filters::all(FilterKind::Bits12), ..usual.clone() },
        TableOptions { filter_prefix_bytes: 1, ..usual.clone() },
        split(&["hot"]),
    ] {
        assert!(!usual.writes_like(&other), "{other:?}");
    }
}

/// Options begin with five numbers. In older manifests, the fifth may differ from 0.
#[test]
fn the_fifth_number_is_written_as_0_and_ignored() {
    let options = TableOptions { page_bytes: 256, node_bytes: 256, ..TableOptions::default() };
    let mut bytes = Vec::new();
    options.encode(&mut bytes);
    // Two bytes each for the page size and the node size, then one each for the index and the compression.
    assert_eq!(bytes[6], 0);
    for number in [1, 3, 127] {
        bytes[6] = number;
        assert_eq!(TableOptions::decode(&mut bytes.as_slice()), Ok(options.clone()));
    }
}

#[test]
fn a_choice_that_a_later_release_has_is_refused_by_name() {
    let mut bytes = Vec::new();
    TableOptions { page_bytes: 256, node_bytes: 256, ..TableOptions::default() }.encode(&mut bytes);
    // Two bytes each for the page size and the node size, then one each for the index and the compression.
    let compressions = [3, 2, 0x12 + 1, 0x13, 0x10, 0x11];
    let compressions = compressions.map(|number| (5, number, format!("compression {number}")));
    for (at, number, expected) in [(4, 3, "index 3".to_owned())].into_iter().chain(compressions) {
        let mut newer = bytes.clone();
        newer[at] = number;
        assert_eq!(TableOptions::decode(&mut newer.as_slice()), Err(Unreadable::Newer(expected)));
    }
}

#[test]
fn each_compression_comes_back_and_a_level_that_there_is_not_is_refused() {
    let usual = TableOptions::default();
    let zstd = Compression::ZSTD_LEVELS.map(|level| Compression::Zstd { level });
    for compression in [Compression::None, Compression::Lz4].into_iter().chain(zstd) {
        let options = TableOptions { compression, ..usual.clone() };
        options.check().expect("there is such a level");
        let mut bytes = Vec::new();
        options.encode(&mut bytes);
        assert_eq!(TableOptions::decode(&mut bytes.as_slice()), Ok(options));
    }
    for level in [0, 20, 255] {
        let error = TableOptions { compression: Compression::Zstd { level }, ..usual.clone() }.check();
        let expected = format!("the options cannot be used: zstd has no level {level}; choose from 1 to 19");
        assert_eq!(error.expect_err("it is refused").to_string(), expected);
    }
}
