use super::*;

fn plan(rows: u64, cache_bytes: u64) -> Plan {
    Sizes { rows, cache_bytes, ..Sizes::default() }.plan()
}

#[test]
fn a_table_of_one_page_has_no_nodes_and_no_filter() {
    let plan = plan(100, 1 << 20);
    assert_eq!((plan.files, plan.data_pages, plan.height), (1, 1, 0));
    assert_eq!((plan.index_bytes, plan.filter_bytes), (0, 0));
    assert_eq!(plan.reads_a_get, 0.0);
}

#[test]
fn what_is_stored_grows_with_the_rows_and_the_height_with_those_of_a_file_alone() {
    let plans: Vec<Plan> = (6..12).map(|power| plan(10_u64.pow(power), 64 << 20)).collect();
    for pair in plans.windows(2) {
        for of in [|plan: &Plan| plan.data_bytes, |plan: &Plan| plan.index_bytes, |plan: &Plan| plan.filter_bytes] {
            let times = of(&pair[1]) as f64 / of(&pair[0]) as f64;
            assert!((9.0..11.0).contains(&times), "{times}: {pair:?}");
        }
        assert!(pair[1].reads_a_get >= pair[0].reads_a_get);
        assert!(pair[1].outside_bytes >= pair[0].outside_bytes);
    }
    assert!(plans.iter().all(|plan| plan.height == 2));
    let one_file = Sizes { rows: 1_000_000_000, file_bytes: 1 << 50, ..Sizes::default() };
    assert_eq!(one_file.plan().height, 3);
}

#[test]
fn memory_is_filled_from_the_roots_down() {
    let nothing = plan(100_000_000, 0);
    assert_eq!(nothing.reads_a_get, 3.0);
    let index: u64 = nothing.levels[..2].iter().map(|level| level.bytes + level.pages * FRAME_BYTES).sum();
    let room_for = |nodes: u64| ((nodes as f64 + LEAST_DATA_BYTES) / (1.0 - DATA_SHARE)) as u64 + 1;
    let whole = plan(100_000_000, room_for(index));
    assert!(whole.levels[1].in_memory > 0.9999 && (0.99..1.0).contains(&whole.reads_a_get), "{whole:?}");
    let half = plan(100_000_000, room_for(index / 2));
    assert!(half.levels[0].in_memory == 1.0 && half.levels[2].in_memory < 0.01, "{half:?}");
    assert!((1.4..1.6).contains(&half.reads_a_get), "{half:?}");
    let all = plan(100_000_000, 1 << 40);
    assert_eq!((all.reads_a_get, all.read_bytes_a_get), (0.0, 0.0));
}

#[test]
fn longer_separators_give_nodes_fewer_children() {
    let children =
        |bytes| Sizes { rows: 1 << 24, key_bytes: 64, separator_bytes: bytes, ..Sizes::default() }.plan().node_children;
    let counts = [None, Some(8), Some(32), Some(64)].map(children);
    assert!(counts.windows(2).all(|pair| pair[0] > pair[1]), "{counts:?}");
}

#[test]
fn filters_take_the_bits_that_they_are_named_after() {
    let bits = |filter| {
        let rows = 50_000_000;
        Sizes { rows, filter, ..Sizes::default() }.plan().filter_bytes as f64 * 8.0 / rows as f64
    };
    assert_eq!(bits(FilterBits::None), 0.0);
    assert!((12.0..12.6).contains(&bits(FilterBits::Twelve)), "{}", bits(FilterBits::Twelve));
    assert!((20.0..21.0).contains(&bits(FilterBits::Twenty)), "{}", bits(FilterBits::Twenty));
}

#[test]
fn sizes_that_no_table_has_are_refused_by_the_name_of_the_option() {
    let sizes = Sizes { rows: 1000, ..Sizes::default() };
    sizes.check().expect("it can be");
    for (wrong, option) in [
        (Sizes { rows: 0, ..sizes }, "--rows"),
        (Sizes { rows: u64::MAX, ..sizes }, "--rows"),
        (Sizes { key_bytes: 0, ..sizes }, "--key-bytes"),
        (Sizes { key_bytes: 117, ..sizes }, "--key-bytes"),
        (Sizes { separator_bytes: Some(17), ..sizes }, "--separator-bytes"),
        (Sizes { page_bytes: 100, ..sizes }, "--page"),
        (Sizes { node_bytes: 1 << 20, ..sizes }, "--node"),
        (Sizes { row_bytes: 8000, ..sizes }, "--row-bytes"),
        (Sizes { file_bytes: 100, ..sizes }, "--file-bytes"),
    ] {
        let why = wrong.check().expect_err("it cannot be");
        assert!(why.contains(option), "{why}");
    }
}
