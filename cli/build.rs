//! Writes the directory of the RocksDB library into the binary, so that the binary starts without LD_LIBRARY_PATH.

fn main() {
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    if let (Ok(folder), Ok(_)) = (std::env::var("ROCKSDB_LIB_DIR"), std::env::var("CARGO_FEATURE_ENGINES_ROCKSDB")) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
