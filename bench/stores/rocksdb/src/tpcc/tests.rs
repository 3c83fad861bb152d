use super::SCHEME;
use ::tpcc::conformance::conforms;
use harness::Target;
use harness::conformance::Scratch;

fn check(options: &str) {
    let scratch = Scratch::new("rocksdb-tpcc");
    let text = format!("rocksdb:{}{options}", scratch.path().join("db").display());
    let target = Target::parse(&text).expect("it is a target");
    conforms(&|setup| (SCHEME.open)(&target, setup).unwrap_or_else(|failure| panic!("{failure}")));
}

#[test]
fn it_conforms_synced() {
    check("?durability=synced&cache=64MiB");
}

#[test]
fn it_conforms_buffered_with_little_memory() {
    check("?durability=buffered&cache=4MiB&write_buffer=4MiB&page=4KiB&filter_bits=0&compression=lz4&statistics=1");
}
