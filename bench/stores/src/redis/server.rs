//! A Redis server of our own, for tests: on a free port of 127.0.0.1, with its files in a temporary directory. Dropping
//! the [`Server`] stops it and removes its files.
//!
//! The server also goes away however else our process ends: a shell in its own process group starts it, reads from a
//! pipe whose other end only our process holds, and kills it when the pipe closes.

use kit::Scratch;
use kit::hints::on_debian;
use std::io::{self, BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Redis is not installed on this machine.
    #[error("there is no redis-server in PATH; {}", on_debian("redis-server"))]
    NotInstalled,
    /// Something went wrong with the server's process.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The server has ended.
    #[error("redis-server failed: {output}")]
    Failed {
        /// What it said.
        output: String,
    },
}

/// A running server.
pub struct Server {
    port: u16,
    shell: Child,
    /// Read to its end, so that the server can always write its log.
    log: Option<std::thread::JoinHandle<()>>,
    _directory: Scratch,
}

/// The script of the shell: starts the server with its own arguments, and kills it at the end of the input. The shell
/// itself does not write to the log, so that the log ends with the server.
const SHELL: &str = r#"
redis-server "$@" </dev/null 2>&1 &
exec >/dev/null
read -r nothing
kill -9 $! 2>/dev/null
wait
"#;

/// The line of the log that tells that the server takes connections.
const READY: &str = "Ready to accept connections";

impl Server {
    /// Starts a server. `settings` are lines of its configuration: name and value.
    ///
    /// # Errors
    ///
    /// [`StartError::NotInstalled`] names the package that is missing.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self, StartError> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&folders).any(|folder| folder.join("redis-server").is_file()) {
            return Err(StartError::NotInstalled);
        }
        let failed = |what| move |source| StartError::System { what, source };
        let directory = Scratch::new("redis");
        std::fs::create_dir_all(directory.path()).map_err(failed("make a directory"))?;
        // Chosen right before the start, since another process could take the port meanwhile.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(failed("find a free port"))?.port();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SHELL, "redis", "--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--dir"]);
        command.arg(directory.path());
        for (name, value) in settings {
            command.arg(format!("--{name}")).arg(value);
        }
        // In a process group of its own, the shell does not get our ^C, and can still stop the server.
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = streams.process_group(0).spawn().map_err(failed("run a shell"))?;
        let mut lines = BufReader::new(shell.stdout.take().expect("it is piped")).lines();
        let mut output = String::new();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| {
            output.push_str(&line);
            output.push('\n');
            line.contains(READY)
        });
        let log = std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let this = Self { port, shell, log: Some(log), _directory: directory };
        if ready { Ok(this) } else { Err(StartError::Failed { output }) }
    }

    /// The target of a database of this server.
    pub fn target(&self, database: u32) -> String {
        format!("redis://127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The shell reads the end of its input, and kills the server.
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
        if let Some(log) = self.log.take() {
            drop(log.join());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::OnceLock;

    /// The server that the tests of this process share. Each uses a database of its own.
    pub fn shared() -> &'static Server {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Server::start(&[]).unwrap_or_else(|why| panic!("{why}")))
    }

    #[test]
    fn a_server_that_does_not_start_says_why() {
        let Err(why) = Server::start(&[("no-such-setting", "1")]) else { panic!("it has started") };
        assert!(matches!(why, StartError::Failed { .. }), "{why}");
        let text = StartError::NotInstalled.to_string();
        assert!(text.contains("apt-get install redis-server"), "{text}");
    }
}
