use super::STORES;
use suite::targets::{KNOWN, Task, list, table};

/// The names of the stores of this binary on which `task` runs.
fn built(task: Task) -> Vec<&'static str> {
    match task {
        // Cassandra's store of keys and values runs only the comparison of its clients.
        Task::Ycsb => STORES.key_value.iter().map(|scheme| scheme.name).filter(|name| *name != "cassandra").collect(),
        Task::Rows => STORES.row_access.iter().map(|scheme| scheme.name).collect(),
        Task::Kv => STORES.partitions.iter().map(|scheme| scheme.name).collect(),
        Task::Tpcc => STORES.tpcc.iter().map(|scheme| scheme.name).collect(),
    }
}

/// Whether this binary has the engine.
fn has_engine(name: &str) -> bool {
    match name {
        "bf-tree" => cfg!(feature = "engines-bf-tree"),
        "cassandra" => cfg!(feature = "engines-cassandra"),
        "fjall" => cfg!(feature = "engines-fjall"),
        "lmdb" => cfg!(feature = "engines-lmdb"),
        "redb" => cfg!(feature = "engines-redb"),
        "rocksdb" => cfg!(feature = "engines-rocksdb"),
        "sqlite" => cfg!(feature = "engines-sqlite"),
        "surrealkv" => cfg!(feature = "engines-surrealkv"),
        _ => panic!("`{name}` is no engine that this test knows"),
    }
}

#[test]
fn the_list_of_targets_is_what_this_binary_has() {
    for task in [Task::Ycsb, Task::Rows, Task::Kv, Task::Tpcc] {
        let is_there = |engine: Option<&str>| engine.is_none_or(has_engine);
        let listed = KNOWN.iter().filter(|known| known.tasks.contains(&task) && is_there(known.engine));
        let mut listed: Vec<&str> = listed.map(|known| known.scheme).collect();
        let mut built = built(task);
        listed.sort_unstable();
        built.sort_unstable();
        assert_eq!(listed, built, "{task:?}");
    }
}

#[test]
fn every_option_of_a_store_is_in_the_list() {
    let list = list(STORES.key_value, &[]);
    for scheme in STORES.key_value {
        for (name, about) in scheme.options {
            assert!(list.contains(&format!("    {name:18} {about}\n")), "{}: {name}", scheme.name);
        }
    }
}

/// The page has the table that the list makes.
#[test]
fn the_page_of_targets_has_the_list() {
    let page = include_str!("../../../docs/benchmarks/targets.md");
    assert!(page.contains(&table()), "put this into docs/benchmarks/targets.md:\n\n{}", table());
}
