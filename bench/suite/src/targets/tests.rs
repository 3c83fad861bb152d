use super::{KNOWN, Task, find, find_key_value, help, list};
use harness::{Target, noop};

fn parsed(target: &str) -> Target {
    Target::parse(target).expect("a good target")
}

fn refusal(target: &str) -> String {
    find_key_value(&[noop::SCHEME], &parsed(target)).err().expect("it is not there").text
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
fn every_command_says_in_the_same_words_how_to_get_a_store() {
    for (task, target) in [
        (Task::Ycsb, "sqlite:dir"),
        (Task::Rows, "sqlite:a.sqlite"),
        (Task::Tpcc, "sqlite:x.db"),
        (Task::Kv, "cassandra:start"),
    ] {
        let scheme = target.split(':').next().expect("it has one");
        let refused =
            find(&[tpcc::noop::SCHEME], |scheme| scheme.name, task, &parsed(target)).err().expect("it has none");
        let expected =
            format!("target `{target}`: this binary has no `{scheme}`: run it with cargo x bench --with {scheme} …");
        assert_eq!((refused.kind, refused.text), ("target", expected), "{task:?}");
    }
}

#[test]
fn a_store_on_which_a_command_never_runs_is_told_from_one_that_is_not_built() {
    let refused = |task, target| {
        find(&[tpcc::noop::SCHEME], |scheme| scheme.name, task, &parsed(target)).err().expect("it has none").text
    };
    assert_eq!(
        refused(Task::Tpcc, "redb:dir"),
        "target `redb:dir`: there is no TPC-C on `redb`; it runs on larch, noop, postgres, rocksdb, sqlite"
    );
    assert_eq!(
        refused(Task::Kv, "sqlite:dir"),
        "target `sqlite:dir`: there is no kv on `sqlite`; it runs on larch, noop, postgres, redis, cassandra"
    );
}

#[test]
fn the_list_says_of_each_scheme_what_it_is_and_what_runs_on_it() {
    let list = list(&[noop::SCHEME], &["noop", "yugabyte"]);
    let line = |start: &str| list.lines().find(|line| line.starts_with(start)).expect("a line of it").to_owned();
    assert!(line("noop:").contains(" built ") && line("noop:").contains(" ycsb, kv, tpcc "), "{list}");
    assert!(line("redb:").contains("not built") && line("redb:").contains("cargo x bench --with redb"), "{list}");
    assert!(line("sqlite:").contains(" ycsb, rows, tpcc ") && line("sqlite:").contains("sqlite:FILE"), "{list}");
    assert!(line("scylla:").contains("not run here"), "{list}");
    assert!(line("yugabyte:").contains(" built ") && line("yugabyte:").contains("not run here"), "{list}");
}

#[test]
fn what_speaks_the_protocol_of_postgresql_runs_the_same() {
    let tasks = |scheme: &str| KNOWN.iter().find(|known| known.scheme == scheme).expect("it is in the list").tasks;
    for scheme in ["cockroach", "yugabyte"] {
        assert_eq!(tasks(scheme), tasks("postgres"), "{scheme}");
    }
}

#[test]
fn the_help_of_a_command_names_its_stores_and_those_that_are_built_on_demand() {
    let help = help(Task::Kv);
    let (always, demand) = help.split_once("; where it is built in ").expect("it names both");
    assert!(always.contains("larch:DIR, noop:, postgres://") && always.contains("redis://"), "{help}");
    assert!(demand.contains("cassandra://") && !help.contains("cockroach") && !help.contains("rocksdb"), "{help}");
}
