use super::*;
use std::fs;

const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,noatime - ext4 /dev/vda rw,discard
40 27 259:2 / /tmp rw,relatime shared:1 - xfs /dev/nvme0n1p2 rw,inode64
41 27 0:50 / /with\\040space rw - tmpfs none rw,size=4k
";

#[test]
fn a_folder_is_on_the_file_system_that_is_mounted_nearest_above_it() {
    let (system, device) = mounted(MOUNTS, Path::new("/tmp")).expect("it is mounted");
    assert_eq!((system.kind.as_str(), system.options.as_str()), ("xfs", "rw,relatime,inode64"));
    assert_eq!(device, Device("259:2".to_owned()));
    let (system, _) = mounted(MOUNTS, Path::new("/")).expect("it is mounted");
    assert_eq!((system.kind.as_str(), system.options.as_str()), ("ext4", "rw,noatime,discard"));
    assert_eq!(mounted("", Path::new("/tmp")), None);
}

#[test]
fn spaces_of_a_place_are_read() {
    assert_eq!(unescaped("/with\\040space"), "/with space");
    assert_eq!(unescaped("/with\\9 \\"), "/with\\9 \\");
}

#[test]
fn a_partition_is_on_its_disk() {
    let scratch = kit::Scratch::new_in(&std::env::temp_dir(), "disk").expect("a test can make a directory");
    let disk = scratch.path().join("sdx");
    for (name, text) in [
        ("queue/rotational", "1\n"),
        ("queue/scheduler", "none [mq-deadline] kyber\n"),
        ("device/model", "A Disk  \n"),
        ("sdx1/partition", "1\n"),
    ] {
        let path = disk.join(name);
        fs::create_dir_all(path.parent().expect("it is below the disk")).expect("a test can make a directory");
        fs::write(path, text).expect("a test can write a file");
    }
    let expected = Disk {
        name: "sdx".to_owned(),
        model: "A Disk".to_owned(),
        rotational: Some(true),
        scheduler: "mq-deadline".to_owned(),
    };
    assert_eq!(Disk::in_folder(&disk.join("sdx1")), expected);
    assert_eq!(expected.text(), "sdx, A Disk, rotates, scheduler mq-deadline");
    assert_eq!(Disk::default().text(), "");
}
