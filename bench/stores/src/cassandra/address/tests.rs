//! Tests of parsing targets, right and wrong.

use super::*;

fn address(target: &str) -> Result<Address, Failure> {
    Address::of(&Target::parse(target)?)
}

type Nodes = (Vec<String>, Option<(String, String)>, Option<String>);

fn nodes_of(target: &str) -> Nodes {
    match address(target).unwrap_or_else(|failure| panic!("{failure}")) {
        Address { server: Where::Nodes { nodes, login }, keyspace, .. } => (nodes, login, keyspace),
        address => panic!("{address:?}"),
    }
}

#[test]
fn nodes_have_ports_and_a_keyspace() {
    assert_eq!(nodes_of("cassandra://localhost"), (vec!["localhost:9042".to_owned()], None, None));
    let (nodes, login, keyspace) = nodes_of("cassandra://ann:pa:ss@db1:1234,[::1],[::1]:9/Mine?compression=lz4");
    assert_eq!(nodes, ["db1:1234", "[::1]:9042", "[::1]:9"]);
    assert_eq!(login, Some(("ann".to_owned(), "pa:ss".to_owned())));
    assert_eq!(keyspace.as_deref(), Some("mine"));
}

#[test]
fn a_server_of_our_own_has_a_directory_or_none() {
    let of = |target| match address(target).unwrap_or_else(|failure| panic!("{failure}")).server {
        Where::Ours(options) => (options.directory, options.heap_mib, options.synced),
        server => panic!("{server:?}"),
    };
    assert_eq!(of("cassandra:start"), (None, 768, false));
    assert_eq!(of("cassandra:data/c?heap=1GiB&durability=synced"), (Some("data/c".into()), 1024, true));
}

#[test]
fn a_wrong_target_is_refused_with_what_it_should_be() {
    for (target, said) in [
        ("cassandra:", "cassandra:start"),
        ("cassandra://", "a node is `host` or `host:port`"),
        ("cassandra://host:x", "a node is `host` or `host:port`"),
        ("cassandra://host/a-b", "a name of Cassandra is"),
        ("cassandra://host?compression=zip", "one of none, lz4"),
        ("cassandra://host?heap=1GiB", "options of `cassandra:start`"),
        ("cassandra:start?heap=1MiB", "at least 256MiB"),
        ("cassandra:start?pages=1", "there is no option `pages`"),
    ] {
        let failure = address(target).expect_err(target);
        assert!(failure.text.contains(said), "{target}: {failure}");
        assert_eq!(failure.kind, "target");
    }
}
