//! A sheet of a journal that decodes is applied or refused. The table that it makes when it is applied stays the
//! same when it is written and read again. Half of the inputs get the right checksum, so that the fuzzer reaches
//! the code behind it.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let is_sealed = input.byte().is_multiple_of(2);
    let mut sheet = b"LARCHJS1".to_vec();
    sheet.extend(input.rest());
    if is_sealed {
        let crc = crc_fast::crc32_iscsi(&sheet);
        sheet.extend(crc.to_le_bytes());
    }
    objects::check_sheet(&sheet);
});
