use super::DiskCounts;

const TEXT: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 1000 10 16000 300 2000 20 64000 400 0 0 0
 254       1 vda1 900 10 8000 300 1500 20 32000 400 0 0 0
";

#[test]
fn the_line_of_the_device_is_found() {
    let counts = DiskCounts::parse(TEXT, 254 << 8 | 1).expect("it is there");
    assert_eq!(counts, DiskCounts { reads: 900, read_bytes: 8000 * 512, written_bytes: 32000 * 512 });
    assert_eq!(DiskCounts::parse(TEXT, 8 << 8), None);
    assert_eq!(DiskCounts::parse("254 0 vda few words", 254 << 8), None);
}
