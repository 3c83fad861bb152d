//! Writes the path of RocksDB's library into the test programs, so that these programs start without
//! LD_LIBRARY_PATH.

fn main() {
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    if let Ok(folder) = std::env::var("ROCKSDB_LIB_DIR") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
