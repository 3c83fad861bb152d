//! Installs the cargo subcommands that the checks need, each at a fixed version. They are installed in
//! `target/tools` and not in the user's cargo home, so two trees with different versions do not replace each
//! other's tools. This module also runs cargo itself. It does not know what the tools
//! check.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[cfg(test)]
mod tests;

/// A cargo subcommand in the registry.
pub struct Tool {
    /// The name of the package, which is also the name of its binary.
    pub name: &'static str,
    /// The version that is installed. This version is fixed, because another version might report other things.
    pub version: &'static str,
}

impl Tool {
    /// The path of the binary. If the binary is missing or has another version, it is installed first.
    ///
    /// # Errors
    ///
    /// Fails if the installation fails; cargo has then printed why.
    pub fn binary(&self, root: &Path) -> Result<PathBuf, String> {
        let folder = root.join("target/tools").join(format!("{}-{}", self.name, self.version));
        let binary = folder.join("bin").join(self.name);
        if binary.exists() {
            return Ok(binary);
        }
        println!("{} {} is not in {}; building it, once", self.name, self.version, folder.display());
        fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // Without optimization, the build takes a third of the time, and the tool still checks this tree in seconds.
        let status = Command::new(cargo)
            .args(["install", "--quiet", "--locked", "--debug", "--version", self.version, self.name, "--root"])
            .arg(&folder)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env_remove("CARGO_TARGET_DIR")
            .current_dir(root)
            .status();
        match status {
            Ok(status) if status.success() => Ok(binary),
            Ok(_) => Err(format!("{} {} cannot be installed", self.name, self.version)),
            Err(error) => Err(format!("cannot start cargo: {error}; install Rust or put cargo in PATH")),
        }
    }
}

/// The cargo that has started this program.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The target folder. The path is absolute, because build scripts run in other folders.
pub fn target_of(root: &Path, target: Option<OsString>) -> PathBuf {
    let target = target.map_or_else(|| root.join("target"), PathBuf::from);
    std::path::absolute(&target).unwrap_or(target)
}

/// Runs a command and returns its exit code. If the command cannot be started, the error calls it `what`.
pub fn ends_as(what: &str, command: &mut Command) -> ExitCode {
    match command.status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            let program = command.get_program().to_string_lossy();
            eprintln!("{what}: cannot start {program}: {error}; install Rust or put cargo in PATH");
            ExitCode::FAILURE
        }
    }
}
