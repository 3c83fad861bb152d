//! A list of a backup that decodes names only files in the backup's directory, and it stays the same when it is
//! written and read again. Half of the inputs get the right checksum, so that the fuzzer reaches the code behind
//! it.
#![no_main]

use larch::fuzz::BackupList;
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
    let Ok(decoded) = BackupList::decode(&list) else { return };
    assert!(decoded.files.iter().all(|file| !file.name.contains('/')));
    assert!(decoded.manifest().starts_with("MANIFEST-"));
    assert_eq!(BackupList::decode(&decoded.encode()).as_ref(), Ok(&decoded));
});
