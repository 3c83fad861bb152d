//! What messages say of how to get what is missing. This module does not know what the engines and packages are.

/// The command that builds a binary with the store `engine` and runs it with `arguments`.
pub fn with_engine(engine: &str, arguments: &str) -> String {
    format!("cargo x bench --with {engine} {arguments}")
}

/// How to install a package of Debian.
pub fn on_debian(package: &str) -> String {
    format!("on Debian: sudo apt-get install {package}")
}
