use super::SCHEME;
use ::tpcc::conformance::conforms;
use harness::Target;
use harness::conformance::Scratch;

#[test]
fn larch_conforms() {
    for options in
        ["?durability=synced&cache=64MiB&write_buffer=4MiB", "?durability=buffered&cache=2MiB&write_buffer=2MiB"]
    {
        let scratch = Scratch::new("larch-tpcc");
        let text = format!("larch:{}{options}", scratch.path().join("db").display());
        let target = Target::parse(&text).expect("it is a target");
        conforms(&|setup| (SCHEME.open)(&target, setup).unwrap_or_else(|failure| panic!("{failure}")));
    }
}
