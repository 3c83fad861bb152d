//! Sets the test programs' rpath to RocksDB's library, so that they start without LD_LIBRARY_PATH.

fn main() {
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    if let (Ok(folder), Ok(_)) = (std::env::var("ROCKSDB_LIB_DIR"), std::env::var("CARGO_FEATURE_ROCKSDB")) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
