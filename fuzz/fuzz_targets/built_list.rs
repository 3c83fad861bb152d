//! If bytes decode to a list of built files, writing and reading this list gives the same list, and its sums do not
//! overflow. The target first gives the bytes the right checksum, so that the fuzzer reaches the code behind the
//! checksum.
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
