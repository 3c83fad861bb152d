//! A list of built files that decodes stays the same when it is written and read again, and its sums do not
//! overflow. Half of the inputs get the right checksum, so that the fuzzer reaches the code behind it.
#![no_main]

use larch::fuzz::BuiltList;
use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let is_sealed = input.byte().is_multiple_of(2);
    let mut list = input.rest().to_vec();
    if is_sealed {
        let crc = crc_fast::crc32_iscsi(&list);
        list.extend(crc.to_le_bytes());
    }
    let Ok(decoded) = BuiltList::decode(&list) else { return };
    assert!(decoded.rows() >= decoded.files.len() as u64 && decoded.bytes() < u64::MAX);
    assert_eq!(BuiltList::decode(&decoded.encode()).as_ref(), Ok(&decoded));
});
