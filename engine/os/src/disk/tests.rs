//! What readers of a whole file promise.

use super::{Access, Disk, FileReader};
use crate::sim::SimDisk;
use std::io::Read;
use std::path::Path;

#[test]
fn a_reader_gives_the_file_from_start_to_end() {
    let disk = SimDisk::new(0);
    let file = disk.open(Path::new("f"), Access::Create).expect("the disk is empty");
    let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    file.append(&bytes).expect("there is room");
    let mut start = [0; 100];
    let mut reader = FileReader::new(file);
    reader.read_exact(&mut start).expect("the file is long enough");
    assert_eq!(start, bytes[..100]);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).expect("the disk is sound");
    assert_eq!(rest, bytes[100..]);
    assert_eq!(disk.read_all(Path::new("f")).expect("the file is there"), bytes);
}
