//! A trace whose pages are numbered.

use super::*;
use pages::Reason;

#[test]
fn pages_have_numbers_and_die_with_their_files() {
    let access = |file, unit, kind, how| TracedAccess { file, unit, bytes: 100, kind, how, reason: Reason::Point };
    let accesses = vec![
        access(1, 8, PageKind::Index, How::Hit),
        access(1, 9, PageKind::Data, How::Needed),
        access(2, 8, PageKind::Data, How::Ahead),
        access(1, 0, PageKind::Footer, How::Dead),
        access(2, 8, PageKind::Data, How::Hit),
        access(3, 8, PageKind::Filter, How::Hit),
        access(9, 0, PageKind::Footer, How::Dead),
    ];
    let recorded = Recorded::new(&Trace { name: "a".to_owned(), operations: 1, accesses }).expect("not empty");
    let events: Vec<(u32, What)> = recorded.events.iter().map(|event| (event.page, event.what)).collect();
    let first = [(0, What::Needed), (1, What::Needed), (2, What::Ahead), (0, What::Dead), (1, What::Dead)];
    assert_eq!(events, [&first[..], &[(2, What::Needed), (3, What::Needed)]].concat());
    let classes: Vec<Class> = recorded.pages.iter().map(|page| page.class).collect();
    assert_eq!(classes, [Class::Index, Class::Data, Class::Data, Class::Index]);
    assert_eq!((recorded.live_bytes, recorded.data_bytes()), ([100, 200], 300));
}

#[test]
fn a_trace_in_which_nothing_was_asked_for_is_empty() {
    let dead =
        TracedAccess { file: 1, unit: 0, bytes: 0, kind: PageKind::Footer, how: How::Dead, reason: Reason::Check };
    for accesses in [Vec::new(), vec![dead]] {
        let trace = Trace { name: "a".to_owned(), operations: 1, accesses };
        let failure = Recorded::new(&trace).expect_err("nothing was asked for");
        assert_eq!((failure.kind, failure.text), (crate::NOTHING, "the trace of a is empty".to_owned()));
    }
}
