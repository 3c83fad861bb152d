//! If bytes decode to the list of a backup, the names in the list stay within the backup's directory. If the list is
//! written and read again, the result is the same list. The target first gives the bytes the right checksum, so that
//! the fuzzer reaches the code behind the checksum.
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
