//! Tests of parsing addresses.

use super::*;

fn parse(address: &str) -> Result<Address, Error> {
    parse_with(address, &[("USER", "someone")])
}

fn parse_with(address: &str, environment: &[(&str, &str)]) -> Result<Address, Error> {
    Address::parse(address, |name| {
        environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn every_part_of_an_address_is_read() {
    let target = parse("postgres://ann:p%40ss@db.example:6000/shop?connections=16&pipeline=10&synchronous_commit=off")
        .expect("it is a good address");
    assert_eq!(target.place, Place::Tcp { host: "db.example".to_owned(), port: 6000 });
    assert_eq!((target.user.as_str(), target.password.as_deref()), ("ann", Some("p@ss")));
    assert_eq!(target.database, "shop");
    assert_eq!((target.connections, target.pipeline), (16, 10));
    assert_eq!(target.settings[1], ("synchronous_commit".to_owned(), "off".to_owned()));
}

#[test]
fn a_host_that_is_a_directory_is_a_unix_socket() {
    for address in ["postgresql:///shop?host=/run/pg&port=5433", "postgres://%2Frun%2Fpg:5433/shop"] {
        let target = parse(address).expect("it is a good address");
        assert_eq!(target.place.to_string(), "/run/pg/.s.PGSQL.5433", "{address}");
    }
}

#[test]
fn an_ipv6_host_stands_in_brackets() {
    let target = parse("postgres://[::1]:6000/shop").expect("it is a good address");
    assert_eq!(target.place, Place::Tcp { host: "::1".to_owned(), port: 6000 });
    assert_eq!(target.place.to_string(), "[::1]:6000");
}

#[test]
fn what_an_address_leaves_out_comes_from_the_environment() {
    let environment =
        [("PGHOST", "h"), ("PGPORT", "7"), ("PGUSER", "u"), ("PGPASSWORD", "p"), ("PGDATABASE", "d"), ("USER", "x")];
    let target = parse_with("postgres://", &environment).expect("the environment has all of it");
    assert_eq!(target.place, Place::Tcp { host: "h".to_owned(), port: 7 });
    assert_eq!((target.user.as_str(), target.password.as_deref()), ("u", Some("p")));
    assert_eq!(target.database, "d");

    let target = parse_with("postgres://localhost", &[("USER", "x")]).expect("the user is known");
    assert_eq!((target.user.as_str(), target.database.as_str(), target.connections), ("x", "x", 1));
}

#[test]
fn a_bad_address_is_refused_with_what_is_wrong_in_it() {
    for (address, what) in [
        ("mysql://x", "no postgres://"),
        ("postgres://u@h:0/d", "no port"),
        ("postgres://u@h:99999/d", "no port"),
        ("postgres://u@[::1/d", "no `]`"),
        ("postgres://u@h/d?connections=0", "connections=0 is not from 1"),
        ("postgres://u@h/d?pipeline=x", "pipeline=x is not from 1"),
        ("postgres://u@h/d?pipeline", "a setting without a value"),
        (
            "postgres://u@h/d?sslmode=on",
            "sslmode=on is none of disable, allow, prefer, require, verify-ca, verify-full",
        ),
        ("postgres://u@h/d?channel_binding=yes", "channel_binding=yes is none of"),
        ("postgres://u@h/d?sslmode=verify-ca&sslrootcert=/none.crt", "sslrootcert=/none.crt: there is no such file"),
        ("postgres://u@h/d?sslmode=require&sslrootcert=system", "only sslmode=verify-full is safe"),
        ("postgres://u@h/d?sslcert=me.crt", "certificates of clients are not supported"),
        ("postgres://u%4@h/d", "hexadecimal"),
        ("postgres://u%00@h/d", "no text"),
        ("postgres://u@h/d/e", "a `/` after the database"),
    ] {
        let error = parse(address).expect_err("it is a bad address").to_string();
        assert!(error.contains(what), "{address}: {error}");
    }
    let error = parse_with("postgres://h", &[]).expect_err("nobody is named").to_string();
    assert!(error.contains("no user"), "{error}");
}

#[test]
fn a_message_about_an_address_does_not_show_its_password() {
    for (address, shown) in [
        ("postgres://ann:secret@h/d?pipeline=0", "postgres://ann:***@h/d?pipeline=0"),
        ("postgres://h/d?user=ann&password=secret&pipeline=0", "postgres://h/d?user=ann&password=***&pipeline=0"),
        ("postgres://ann:secret/x@h:1/d", "postgres://ann:***@h:1/d"),
        ("postgres://ann:secret/x@h", "postgres://ann:***@h"),
        ("postgres://ann:x?secret@h/d", "postgres://ann:***@h/d"),
        ("postgres://ann:x@secret/y@h/d/", "postgres://ann:***@h/d/"),
    ] {
        let error = parse(address).expect_err("it is a bad address").to_string();
        assert!(!error.contains("secret") && error.contains(shown), "{error}");
    }
}

#[test]
fn tls_is_what_the_address_and_then_the_environment_say() {
    let encryption = |address: &str, environment: &[(&str, &str)]| {
        let environment = [&[("USER", "x")], environment].concat();
        parse_with(address, &environment).expect("it is a good address").encryption
    };
    let unsaid = encryption("postgres://h", &[]);
    assert_eq!((unsaid.mode, unsaid.checked(), unsaid.binding), (Mode::Prefer, Checked::Nothing, Binding::Prefer));
    let environment = [("PGSSLMODE", "verify-full"), ("PGCHANNELBINDING", "require")];
    let set = encryption("postgres://h", &environment);
    assert_eq!((set.mode, set.roots, set.binding), (Mode::VerifyFull, Roots::System, Binding::Require));
    assert_eq!(encryption("postgres://h?sslmode=disable", &environment).mode, Mode::Disable);
    for (mode, with, without) in [
        ("disable", Checked::Nothing, Checked::Nothing),
        ("allow", Checked::Nothing, Checked::Nothing),
        ("prefer", Checked::Nothing, Checked::Nothing),
        ("require", Checked::Chain, Checked::Nothing),
        ("verify-ca", Checked::Chain, Checked::Chain),
        ("verify-full", Checked::ChainAndName, Checked::ChainAndName),
    ] {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let checked = |more: &str| encryption(&format!("postgres://h?sslmode={mode}{more}"), &[]).checked();
        assert_eq!((checked(&format!("&sslrootcert={file}")), checked("")), (with, without), "{mode}");
    }
}
