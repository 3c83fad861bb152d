//! Writes into the binary where the library of RocksDB lies, so that it starts without LD_LIBRARY_PATH.

fn main() {
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    if let (Ok(folder), Ok(_)) = (std::env::var("ROCKSDB_LIB_DIR"), std::env::var("CARGO_FEATURE_ROCKSDB")) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
