use super::*;

#[test]
fn lines_of_the_system_are_read_by_name() {
    let cpu = "processor\t: 0\nmodel name\t: A Processor: 2 GHz\nmodel name\t: another\n";
    assert_eq!(after(cpu, "model name").as_deref(), Some("A Processor: 2 GHz"));
    assert_eq!(after(cpu, "cache"), None);
    assert_eq!(kib_after("MemTotal:       24 kB\n", "MemTotal:"), Some(24 * 1024));
    assert_eq!(kib_after("MemTotal:       many kB\n", "MemTotal:"), None);
}

#[test]
fn room_is_that_of_the_nearest_folder_there_is() {
    assert_eq!(existing(Path::new("/no/such/folder")), Some(Path::new("/")));
    assert_eq!(existing(Path::new("nothing-of-that-name/below")), Some(Path::new(".")));
}

#[test]
fn an_environment_is_gathered_wherever_it_is() {
    let environment = Environment::gather("1.2.3", Path::new("/no/such/folder"));
    assert_eq!(environment.version, "1.2.3");
    assert!(environment.machine.processors > 0);
    assert!(!environment.machine.file_system.kind.is_empty(), "every folder is on a file system");
}
