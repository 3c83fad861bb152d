use super::*;

fn check(arguments: &str, expected: Result<Plan, &str>) {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    assert_eq!(plan(&words), expected.map_err(str::to_owned), "cargo x bench {arguments}");
}

#[test]
fn the_engines_are_named_anywhere_and_the_rest_is_for_the_benchmark() {
    check("index --quick", Ok(Plan::Index(vec!["--quick"])));
    check("ycsb run --time 5s", Ok(Plan::Default(vec!["ycsb", "run", "--time", "5s"])));
    check("--with redb,lmdb ycsb run", Ok(Plan::With(vec!["redb", "lmdb"], vec!["ycsb", "run"])));
    check("peers --with=sqlite --quick", Ok(Plan::With(vec!["sqlite"], vec!["peers", "--quick"])));
    check("--with redb --with redb,fjall targets", Ok(Plan::With(vec!["redb", "fjall"], vec!["targets"])));
    check("targets --with all", Ok(Plan::With(ENGINES.to_vec(), vec!["targets"])));
    check("--with all --check", Ok(Plan::Check(ENGINES.to_vec())));
}

#[test]
fn what_cannot_be_done_is_told_with_what_there_is() {
    const KNOWN: &str = "there are rocksdb, fjall, redb, lmdb, sqlite, surrealkv, bf-tree, cassandra and all";
    let unknown = format!("no engine `sled` for --with: {KNOWN}; larch, noop and postgres always are");
    check("--with redb,sled ycsb", Err(&unknown));
    check("ycsb --with", Err(&format!("--with wants names: {KNOWN}")));
    const MEASURES: &str = "index, targets, ycsb, rows, kv, tpcc, worker, merge, report, picture, compare, regress, compare-trials, peers, cold, writes, transactions, generator, pgbench, kv-client-cost, cache-trace, experiment";
    check("", Err(&format!("say what to measure: {MEASURES}")));
    check("--with redb", Err(&format!("say what to measure: {MEASURES}")));
    check("tpch --time 5s", Err(&format!("there is no `tpch` to measure: {MEASURES}")));
    check("--with redb tpch", Err(&format!("there is no `tpch` to measure: {MEASURES}")));
    check("--with redb index", Err("`index` has no other engines: leave out --with"));
    check("--check", Err(&format!("--check is for the stores of other engines: --with {KNOWN}")));
    check("--with redb --check ycsb run", Err("--check measures nothing: leave out `ycsb run`"));
}

/// For each word of [`MEASURES`], the arguments of `larch bench` have a variant.
#[test]
fn what_is_measured_is_what_larch_bench_knows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository");
    let read = |file| std::fs::read_to_string(root.join(file)).expect("it is in the tree");
    let args = ["bench/suite/src/args.rs", "bench/experiments/src/args.rs", "cli/src/bench.rs"].map(read).concat();
    for word in MEASURES {
        let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
        let variant = format!("    {}", word.split('-').map(capital).collect::<String>());
        assert!(args.lines().any(|line| line.starts_with(&variant)), "larch bench has no {word}");
    }
}

/// Every engine is a feature of the command, and of the stores.
#[test]
fn the_command_has_the_engines_that_are_named() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository");
    let manifest = |folder: &str| {
        std::fs::read_to_string(root.join(folder).join("Cargo.toml")).expect("the package is in the tree")
    };
    let (command, stores) = (manifest("cli"), manifest("bench/stores"));
    for engine in ENGINES {
        assert!(
            command.contains(&format!("\nengines-{engine} = [\"bench\", \"stores/{engine}\"]")),
            "{engine} is no feature of the command"
        );
        assert!(stores.contains(&format!("\n{engine} = [\"dep:")), "{engine} is no feature of the stores");
    }
}
