//! Every polled future ends, whatever happens to the others. `cargo x sim` runs more seeds.

use testkit::futures::{Met, read_by_futures};
use testkit::history::History;
use testkit::options::TinyOptions;
use testkit::rerun::Rerun;

const STEPS: usize = 199;

#[test]
fn futures_and_threads_end_once_no_read_fails_whichever_futures_are_not_polled() {
    let mut all = Met::default();
    for seed in 0..12 {
        let _rerun = Rerun::of(seed, STEPS, 1);
        for options in TinyOptions::with_each_cache(seed) {
            // The history's own reads complete in random order, too.
            let mut history = History::with_options(seed, options).holding_reads();
            history.run(STEPS).expect("the disk does not fail");
            let Met { ended, failed, dropped, queued } = read_by_futures(seed, 4 * STEPS, history);
            all.ended += ended;
            all.failed += failed;
            all.dropped += dropped;
            all.queued += queued;
        }
    }
    println!("{all:?}");
    assert!(all.failed > 10 && all.dropped > 100 && all.queued > 100 && all.ended > 1000, "they met little: {all:?}");
}
