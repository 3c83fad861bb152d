//! A PostgreSQL server of our own, for tests and comparisons: a fresh cluster in a temporary directory. It listens
//! on a Unix socket in that directory and, on request, on a loopback port. Dropping the [`Server`] stops it and
//! removes its files.
//!
//! The server also goes away however else our process ends. A watchdog sees to that: a shell in its own process
//! group that reads from a pipe whose other end only our process holds, so the pipe closes when our process ends.
//!
//! PostgreSQL refuses to run as root. If we are root, the server runs as the user `postgres`, which PostgreSQL's
//! package creates.

use crate::postgres::address::Address;
use crate::postgres::connection::Connection;
use crate::postgres::error::Error;
use kit::Scratch;
use kit::hints::on_debian;
use rustix::event::{PollFd, PollFlags};
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[cfg(test)]
pub(crate) mod tests;

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// PostgreSQL is not installed on this machine.
    #[error("there is no PostgreSQL server here ({missing}); {}", on_debian("postgresql"))]
    NotInstalled {
        /// What was looked for.
        missing: String,
    },
    /// Something went wrong with the server's directory or its processes.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// A program of PostgreSQL failed.
    #[error("{program} failed: {output}")]
    Failed {
        /// Its name.
        program: &'static str,
        /// What it said.
        output: String,
    },
}

/// Options of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Server settings: name and value.
    pub settings: Vec<(String, String)>,
    /// If set, the server also listens on a free port of 127.0.0.1, with this authentication method: `trust`,
    /// `scram-sha-256`, `md5` or `password`. The Unix socket trusts everybody who can open it: root and the server's
    /// user.
    pub loopback: Option<&'static str>,
    /// Files to put into the data directory, by name, readable only for the server. For example a certificate, or a
    /// `pg_hba.conf` that replaces ours.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A running server.
pub struct Server {
    directory: Scratch,
    programs: PathBuf,
    port: u16,
    server: Child,
    watchdog: Child,
}

/// The watchdog's script. At the end of its input, it stops the server whose data directory is `$2`, and removes the
/// directory `$3`.
const WATCHDOG: &str = r#"
read -r nothing
"$1/pg_ctl" stop --silent --mode immediate --pgdata "$2" >"$3/stop.log" 2>&1
rm -rf "$3"
"#;

/// Limit for a start, which takes some seconds on a machine that is busy with builds.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The port in the socket's name if the server listens on no TCP port.
const SOCKET_PORT: u16 = 5432;
/// The superuser of each cluster.
const USER: &str = "postgres";

impl Server {
    /// Makes a cluster and starts it. `initdb` runs without syncs, so durability depends on the settings alone.
    ///
    /// # Errors
    ///
    /// [`StartError::NotInstalled`] names the package that is missing.
    pub fn start(options: &ServerOptions) -> Result<Self, StartError> {
        let programs = programs()?;
        let owner = if rustix::process::geteuid().is_root() { Some(owner()?) } else { None };
        let directory = make_directory(owner)?;
        Self::start_in(directory, programs, owner, options)
    }

    /// Copies the data of `primary`, and starts a replica called `name` that follows its log. If
    /// `synchronous_standby_names` of `primary` contains this name, commits wait for the replica. The replica serves
    /// reads on a socket of its own.
    ///
    /// # Errors
    ///
    /// [`StartError::NotInstalled`] names the missing package; [`StartError::Failed`] if `primary` refuses to be
    /// copied, as servers with [`ServerOptions::loopback`] do.
    pub fn start_replica(primary: &Self, name: &str) -> Result<Self, StartError> {
        let owner = if rustix::process::geteuid().is_root() { Some(owner()?) } else { None };
        let directory = make_directory(owner)?;
        let mut copy = as_owner(Command::new(primary.programs.join("pg_basebackup")), owner);
        copy.args([
            "--checkpoint=fast",
            "--wal-method=stream",
            "--write-recovery-conf",
            "--no-sync",
            "--username",
            USER,
        ])
        .arg("--pgdata")
        .arg(directory.join("data"))
        .arg("--host")
        .arg(primary.directory.path())
        .args(["--port", &primary.port.to_string()]);
        run_to_end("pg_basebackup", copy)?;
        let settings = vec![("cluster_name".to_owned(), name.to_owned())];
        let options = ServerOptions { settings, ..ServerOptions::default() };
        Self::start_on((directory, primary.programs.clone(), SOCKET_PORT), owner, &options)
    }

    fn start_in(
        directory: Scratch,
        programs: PathBuf,
        owner: Option<Owner>,
        options: &ServerOptions,
    ) -> Result<Self, StartError> {
        let data = directory.join("data");
        let mut initdb = as_owner(Command::new(programs.join("initdb")), owner);
        initdb
            .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--username", USER, "--pgdata"])
            .arg(&data);
        run_to_end("initdb", initdb)?;
        if let Some(method) = options.loopback {
            let access = format!("local all all trust\nhost all all 127.0.0.1/32 {method}\n");
            let file = data.join("pg_hba.conf");
            fs::write(&file, access)
                .map_err(|source| StartError::System { what: format!("write {}", file.display()), source })?;
        }
        for (name, bytes) in &options.files {
            let file = data.join(name);
            write_for(owner, &file, bytes)
                .map_err(|source| StartError::System { what: format!("write {}", file.display()), source })?;
        }
        // Chosen right before the start, since another process could take the port meanwhile.
        let port = if options.loopback.is_some() { free_port()? } else { SOCKET_PORT };
        Self::start_on((directory, programs, port), owner, options)
    }

    /// Starts a server on existing data.
    fn start_on(
        (directory, programs, port): (Scratch, PathBuf, u16),
        owner: Option<Owner>,
        options: &ServerOptions,
    ) -> Result<Self, StartError> {
        let data = directory.join("data");
        let log_file = directory.join("log");
        let log = fs::File::create(&log_file)
            .map_err(|source| StartError::System { what: format!("create {}", log_file.display()), source })?;
        let error_log = log
            .try_clone()
            .map_err(|source| StartError::System { what: "open the server's log twice".to_owned(), source })?;
        let mut command = as_owner(Command::new(programs.join("postgres")), owner);
        command.arg("-D").arg(&data).arg("-p").arg(port.to_string()).arg("-k").arg(directory.path());
        let listen = if options.loopback.is_some() { "127.0.0.1" } else { "" };
        let ours = [("listen_addresses", listen), ("lc_messages", "C"), ("logging_collector", "off")];
        let theirs = options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in ours.into_iter().chain(theirs) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        // In a process group of its own, the watchdog does not get our ^C, and can still stop the server.
        let server = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(error_log)
            .process_group(0)
            .spawn()
            .map_err(|source| StartError::System { what: "run postgres".to_owned(), source })?;
        let watchdog = as_owner(Command::new("/bin/sh"), owner)
            .args(["-c", WATCHDOG, "watchdog"])
            .args([&programs, &data, directory.path()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let watchdog = match watchdog {
            Ok(watchdog) => watchdog,
            Err(source) => {
                let mut server = server;
                drop(server.kill());
                drop(server.wait());
                return Err(StartError::System { what: "run a shell to watch the server".to_owned(), source });
            }
        };
        let mut this = Self { directory, programs, port, server, watchdog };
        this.wait_until_ready()?;
        Ok(this)
    }

    fn wait_until_ready(&mut self) -> Result<(), StartError> {
        let address = Address::parse(&self.url("postgres"), |_| None).expect("our own address is a good one");
        let begin = Instant::now();
        loop {
            let ended = self.server.try_wait();
            if !matches!(ended, Ok(None)) || begin.elapsed() > START_LIMIT {
                return Err(StartError::Failed { program: "postgres", output: self.log() });
            }
            match Connection::open(&address) {
                Ok(_) => return Ok(()),
                Err(_) => self.wait_for_end(Duration::from_millis(10))?,
            }
        }
    }

    /// Waits until the server has ended, but no longer than `limit`.
    fn wait_for_end(&self, limit: Duration) -> Result<(), StartError> {
        let failed = |error: rustix::io::Errno| StartError::System {
            what: "wait for the server".to_owned(),
            source: error.into(),
        };
        let pid = rustix::process::Pid::from_child(&self.server);
        let server = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).map_err(failed)?;
        let limit = limit.try_into().expect("it is short");
        match rustix::event::poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// The address of a database of this server, over its socket. The database `postgres` always exists.
    pub fn url(&self, database: &str) -> String {
        let directory = self.directory.path().display();
        format!("postgres://{USER}@/{database}?host={directory}&port={}", self.port)
    }

    /// The address of a database of this server, over the loopback. `who` is a user, perhaps with a password:
    /// `ann:secret`.
    pub fn loopback_url(&self, who: &str, database: &str) -> String {
        format!("postgres://{who}@127.0.0.1:{}/{database}", self.port)
    }

    /// Opens a session of the superuser in the database `postgres`.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is gone.
    pub fn connect(&self) -> Result<Connection, Error> {
        Connection::open(&Address::parse(&self.url("postgres"), |_| None)?)
    }

    /// Makes commits wait until the replicas called `names` have synced them in their logs.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is gone.
    pub fn wait_for_replicas(&self, names: &[&str]) -> Result<(), Error> {
        let mut connection = self.connect()?;
        let all = format!("{} ({})", names.len(), names.join(", "));
        connection.query(&format!("ALTER SYSTEM SET synchronous_standby_names = '{all}'"))?;
        connection.query("SELECT pg_reload_conf()")?;
        // Once a new session has the setting, the server has told all its processes about it.
        let mut told = self.connect()?;
        while told.value("SHOW synchronous_standby_names")? != all {
            told = self.connect()?;
        }
        // Commits wait only once the checkpointer has read the setting and said so in shared memory, and it reads
        // settings between checkpoints. A checkpoint that began before the change may have missed it, so this makes
        // two.
        told.query("CHECKPOINT")?;
        told.query("CHECKPOINT")?;
        Ok(())
    }

    /// The directory of the server's socket, for other clients.
    pub fn socket_directory(&self) -> &Path {
        self.directory.path()
    }

    /// The port in the name of the server's socket, for other clients.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of PostgreSQL's programs, such as `pgbench`.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// The server's log so far.
    pub fn log(&self) -> String {
        let log = fs::read(self.directory.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Stops the server at once, as a crash would. Sessions may be in the middle of a request.
    ///
    /// # Errors
    ///
    /// Returns an error if the signal cannot be sent.
    pub fn kill(&mut self) -> io::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.server);
        // SIGQUIT ends the server's sessions without a rollback. SIGKILL would leave them running.
        rustix::process::kill_process(pid, rustix::process::Signal::QUIT)?;
        self.server.wait().map(|_| ())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // A wait fails only if no process is left to wait for.
        drop(self.watchdog.wait());
        drop(self.server.wait());
    }
}

/// Finds PostgreSQL's programs. Debian keeps those of the server out of PATH.
fn programs() -> Result<PathBuf, StartError> {
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&in_path).filter_map(|folder| {
        // Follows a link in PATH to the directory with the other programs.
        let program = fs::canonicalize(folder.join("postgres")).ok()?;
        program.parent().map(Path::to_owned)
    });
    let mut of_debian: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    of_debian.sort_by_key(|path| std::cmp::Reverse(version_of(path)));
    let has_all = |folder: &PathBuf| ["initdb", "postgres", "pg_ctl"].iter().all(|name| folder.join(name).is_file());
    in_path.chain(of_debian).find(has_all).ok_or_else(|| StartError::NotInstalled {
        missing: "no initdb, postgres and pg_ctl in PATH or /usr/lib/postgresql/*/bin".to_owned(),
    })
}

/// `/usr/lib/postgresql/15/bin` → 15.
fn version_of(programs: &Path) -> u32 {
    let version = programs.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// The user who runs the server if we are root.
#[derive(Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

fn owner() -> Result<Owner, StartError> {
    let users = fs::read_to_string("/etc/passwd")
        .map_err(|source| StartError::System { what: "read /etc/passwd".to_owned(), source })?;
    users.lines().find_map(owner_of_line).ok_or_else(|| StartError::NotInstalled {
        missing: format!("root may not run it, and there is no user `{USER}` to run it as"),
    })
}

/// Parses a line of /etc/passwd: `postgres:x:101:104:…`.
fn owner_of_line(line: &str) -> Option<Owner> {
    let mut words = line.split(':');
    let is_it = words.next()? == USER;
    let (user, group) = (words.nth(1)?.parse().ok()?, words.next()?.parse().ok()?);
    is_it.then_some(Owner { user, group })
}

fn as_owner(mut command: Command, owner: Option<Owner>) -> Command {
    if let Some(Owner { user, group }) = owner {
        command.uid(user).gid(group);
    }
    // The server's user may have no access to our current directory.
    command.current_dir("/");
    command
}

/// Runs one of PostgreSQL's programs to its end.
fn run_to_end(program: &'static str, mut command: Command) -> Result<(), StartError> {
    let ended = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| StartError::System { what: format!("run {program}"), source })?;
    match ended.status.success() {
        true => Ok(()),
        false => {
            let output = String::from_utf8_lossy(&ended.stderr).into_owned();
            Err(StartError::Failed { program, output })
        }
    }
}

/// Writes a file that only the server may read. It refuses a private key that others can read.
fn write_for(owner: Option<Owner>, file: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(file, bytes)?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
    match owner {
        Some(Owner { user, group }) => std::os::unix::fs::chown(file, Some(user), Some(group)),
        None => Ok(()),
    }
}

fn make_directory(owner: Option<Owner>) -> Result<Scratch, StartError> {
    let failed = |source| StartError::System { what: "make a directory for the server".to_owned(), source };
    let scratch = Scratch::new_in(&std::env::temp_dir(), "postgres").map_err(|why| failed(io::Error::other(why)))?;
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).map_err(failed)?;
    if let Some(Owner { user, group }) = owner {
        std::os::unix::fs::chown(scratch.path(), Some(user), Some(group)).map_err(failed)?;
    }
    Ok(scratch)
}

fn free_port() -> Result<u16, StartError> {
    let failed = |source| StartError::System { what: "find a free port of 127.0.0.1".to_owned(), source };
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    Ok(listener.local_addr().map_err(failed)?.port())
}
