use super::*;

#[test]
fn a_kind_is_a_name_for_a_directory() {
    let kind = MachineKind {
        processor: "Intel(R) Xeon(R) Processor @ 2.60GHz".to_owned(),
        processors: 2,
        memory_gib: 24,
        disk: kind_of("vda", true).to_owned(),
    };
    assert_eq!(kind.name(), "intel-r-xeon-r-processor-2-60ghz-2-processors-24-gib-virtio");
    assert_eq!(
        [("nvme0n1", false), ("sda", false), ("sdb", true)].map(|(name, rotates)| kind_of(name, rotates)),
        ["nvme", "ssd", "hdd"]
    );
}

#[test]
fn this_machine_has_a_kind_that_stays() {
    let here = MachineKind::here(Path::new("."));
    assert!(here.processors > 0 && here.memory_gib > 0, "{here:?}");
    assert_eq!(here, MachineKind::here(Path::new(".")));
}
