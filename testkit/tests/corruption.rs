//! If a bit of a file is flipped, a read may return an error, but never a wrong row. `cargo x sim` runs more
//! seeds.

use testkit::corruption::flip_bits;
use testkit::rerun::Rerun;
use testkit::simulate::FLIPS;

const STEPS: usize = 199;
const SAMPLES: usize = 20;

#[test]
fn a_flipped_bit_is_an_error_that_names_the_file_or_changes_nothing() {
    for seed in 0..60 {
        let _rerun = Rerun::of(seed, STEPS, SAMPLES);
        flip_bits(seed, STEPS, FLIPS * SAMPLES);
    }
}
