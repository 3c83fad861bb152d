use super::*;

fn parse(target: &str) -> Result<Address, Failure> {
    Address::parse(&Target::parse(target)?)
}

#[test]
fn every_part_of_an_address_is_read() {
    let address = parse("redis://ann:p%40s%3As@db.example:7000/3?pipeline=8").expect("a good address");
    assert_eq!((address.host.as_str(), address.port, address.database), ("db.example", 7000, 3));
    assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("ann"), Some("p@s:s")));
    assert_eq!(address.pipeline, Some(8));
    let address = parse("redis://:secret@[::1]").expect("a good address");
    assert_eq!((address.user, address.password.as_deref()), (None, Some("secret")));
    assert_eq!((address.host.as_str(), address.port, address.database, address.pipeline), ("::1", 6379, 0, None));
    assert_eq!(parse("redis://").expect("a good address").host, "localhost");
    assert_eq!(parse("redis://[::1]:7/2").expect("a good address").to_string(), "[::1]:7/2");
}

#[test]
fn a_bad_address_is_refused_with_what_is_wrong_and_without_its_password() {
    for (target, what) in [
        ("redis:db", "write redis://host:port"),
        ("redis://h:0", "the port is a number"),
        ("redis://h:x", "the port is a number"),
        ("redis://[::1", "no `]`"),
        ("redis://h/main", "the database is a number"),
        ("redis://ann@h", "needs a password"),
        ("redis://ann:secret%4@h", "hexadecimal"),
        ("redis://ann:secret@h?pipeline=x", "a whole number"),
        ("redis://ann:secret@h?cluster=1", "no option `cluster`"),
    ] {
        let Err(error) = parse(target) else { panic!("{target} is taken") };
        assert!(error.text.contains(what) && !error.text.contains("secret"), "{target}: {error}");
    }
}
