//! Tests of what a database remembers.

use super::*;

#[test]
fn a_form_with_sums_apart_is_refused_by_a_program_that_does_not_know_them() {
    let form = Form { warehouses: 3, seed: 7, loaded: 11 };
    let (without, with) = (encode_form(&form), encode_form_with_sums(&form));
    for (value, has_sums) in [(&without, false), (&with, true)] {
        let (decoded, decoded_has_sums) = decode_form(value).expect("it was encoded");
        assert_eq!((decoded.warehouses, decoded.seed, decoded.loaded), (3, 7, 11));
        assert_eq!(decoded_has_sums, has_sums);
    }
    // What such a program calls.
    assert!(<(u32, u64, i64)>::decode(&without).is_ok() && <(u32, u64, i64)>::decode(&with).is_err());
}
