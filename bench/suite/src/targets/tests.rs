use super::{find, list};
use harness::{Target, noop};

fn refusal(target: &str) -> String {
    let target = Target::parse(target).expect("a good target");
    find(&[noop::SCHEME], &target).err().expect("it is not there").text
}

#[test]
fn a_scheme_that_is_not_built_names_the_command_that_builds_it() {
    assert_eq!(
        refusal("rocksdb:dir"),
        "target `rocksdb:dir`: this binary has no `rocksdb`: run it with cargo x bench --with rocksdb …"
    );
    assert_eq!(
        refusal("ydb://host/db"),
        "target `ydb://host/db`: `ydb` cannot be measured: no server of it is available here"
    );
    assert_eq!(refusal("oracle:x"), "target `oracle:x`: there is no scheme `oracle`; `larch bench targets` lists them");
}

#[test]
fn the_list_says_of_each_scheme_what_it_is() {
    let unseen = tpcc::Scheme { name: "yugabyte", ..tpcc::noop::SCHEME };
    let list = list(&[noop::SCHEME], &[tpcc::noop::SCHEME, unseen]);
    let line = |start: &str| list.lines().find(|line| line.starts_with(start)).expect("a line of it").to_owned();
    assert!(line("noop:").contains(" built "), "{list}");
    assert!(line("redb:").contains("not built") && line("redb:").contains("cargo x bench --with redb"), "{list}");
    assert!(line("scylla:").contains("not run here"), "{list}");
    assert_eq!(line("TPC-C"), "TPC-C runs on noop");
    assert!(line("  and, as").contains(" on yugabyte: not run here"), "{list}");
}
