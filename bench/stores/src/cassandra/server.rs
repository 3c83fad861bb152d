//! A Cassandra server of our own: one node on free loopback ports, run from the jars that the script `fetch`
//! downloads. Tests, comparisons and the targets `cassandra:start` and `cassandra:DIR` use it. Dropping the
//! [`Server`] ends it.
//!
//! The server also ends however else our process ends. A watchdog sees to that: a shell in its own process group,
//! which starts the server and then reads from a pipe whose other end only our process holds, so the pipe closes
//! when our process ends.
//!
//! This module does not know what the server stores.

#[cfg(test)]
pub(crate) mod tests;

use harness::StoreUse;
use kit::Scratch;
use kit::hints::{on_debian, with_engine};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The version that `fetch` downloads.
pub const VERSION: &str = "5.0.9";

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The jars are missing.
    #[error(
        "the jars of Cassandra are not here ({missing}): use `{}`, or run bench/stores/cassandra/fetch FOLDER and set \
         CASSANDRA_LIB_DIR=FOLDER",
        with_engine("cassandra", "…")
    )]
    NotFetched {
        /// What was looked for.
        missing: String,
    },
    /// The machine has no suitable Java.
    #[error("Cassandra {VERSION} needs Java 17 ({found}); {}", on_debian("openjdk-17-jre-headless"))]
    NoJava {
        /// What the machine has instead.
        found: String,
    },
    /// The server's directory contains something else.
    #[error("{} is not empty and has no data of Cassandra: name another directory", .0.display())]
    NotOurs(PathBuf),
    /// Something went wrong with the server's directory or its processes.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The server ended, or did not answer in time.
    #[error("Cassandra {how}; the end of its log: {log}")]
    Failed {
        /// What happened.
        how: &'static str,
        /// The end of its log.
        log: String,
    },
}

/// Options of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The directory in which data stay. With `None`, a temporary directory, which is removed when the server ends.
    pub directory: Option<PathBuf>,
    /// Size of the Java heap, in MiB. The server uses about as much memory outside the heap.
    pub heap_mib: u64,
    /// Whether a write is answered only after a sync of the commit log. Otherwise the log is synced every ten
    /// seconds.
    pub synced: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { directory: None, heap_mib: 768, synced: false }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    directory: Place,
    address: SocketAddr,
    heap_mib: u64,
    /// The server's process, a child of the watchdog.
    process: OwnedFd,
    watchdog: Child,
}

/// A server's directory.
#[derive(Debug)]
enum Place {
    /// Removed at the end.
    Temporary(Scratch),
    /// Kept.
    Kept(PathBuf),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(scratch) => scratch.path(),
            Self::Kept(path) => path,
        }
    }
}

/// The watchdog's script. It starts the server, prints its process id, and ends it when its own input ends. If `$1`
/// is `remove`, it kills the server and removes the directory `$2`. If `$1` is `keep`, it asks the server to end,
/// and kills it after a minute.
const WATCHDOG: &str = r#"
then=$1 directory=$2
shift 2
"$@" </dev/null >"$directory/log" 2>&1 &
server=$!
echo "$server"
exec >/dev/null
read -r nothing
if [ "$then" = remove ]; then
    kill -KILL "$server"
    wait "$server"
    rm -rf "$directory"
else
    kill -TERM "$server"
    { sleep 60; kill -KILL "$server"; } &
    killer=$!
    wait "$server"
    kill "$killer"
fi
"#;

/// Limit for a start, which takes ten seconds on two idle processors, and several times as long on busy ones.
const START_LIMIT: Duration = Duration::from_secs(240);

/// The first line of the server's settings file, by which we recognize a directory of ours.
const MARK: &str = "# Written by larch bench each time that it starts this server.";

/// The internal packages of Java that Cassandra needs, as listed in its `jvm17-server.options`.
const OPENED: [&str; 25] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.math",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.management.rmi/javax.management.remote.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
    "jdk.management/com.sun.management.internal",
];

impl Server {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    ///
    /// [`StartError::NotFetched`] says how to get the jars, and [`StartError::NoJava`] says how to get Java.
    pub fn start(options: &ServerOptions) -> Result<Self, StartError> {
        let jars = jars("server")?;
        let java = java()?;
        let directory = match &options.directory {
            None => Scratch::new_in(&std::env::temp_dir(), "cassandra")
                .map(Place::Temporary)
                .map_err(|why| system("make a directory for the server", io::Error::other(why)))?,
            Some(path) => Place::Kept(directory_of_ours(path)?),
        };
        let [port, storage_port] = free_ports()?;
        let settings = directory.path().join("cassandra.yaml");
        let logging = directory.path().join("logback.xml");
        for (file, text) in [
            (&settings, settings_text(directory.path(), port, storage_port, options.synced)),
            (&logging, LOGGING.to_owned()),
        ] {
            fs::write(file, text).map_err(|source| system(&format!("write {}", file.display()), source))?;
        }
        let heap = options.heap_mib;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WATCHDOG, "watchdog"]);
        command.arg(if matches!(directory, Place::Temporary(_)) { "remove" } else { "keep" });
        command.arg(directory.path()).arg(java);
        command.args([format!("-Xms{heap}m"), format!("-Xmx{heap}m")]);
        command.args(["-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError", "-Djdk.attach.allowAttachSelf=true"]);
        command.args(opened());
        command.arg(of_java("cassandra.config", format!("file://{}", settings.display())));
        command.arg(of_java("cassandra.storagedir", directory.path()));
        command.arg(of_java("logback.configurationFile", &logging));
        command.arg(of_java("java.io.tmpdir", directory.path()));
        // A single node need not wait for other nodes.
        command.args(["-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.ring_delay_ms=0"]);
        command.args(["-Dcassandra-foreground=yes", "-cp"]).arg(jars.join("*"));
        command.arg("org.apache.cassandra.service.CassandraDaemon");
        // In a process group of its own, the watchdog does not get our ^C, and can still stop the server.
        let mut watchdog = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|source| system("run a shell to watch the server", source))?;
        let mut number = String::new();
        let told = BufReader::new(watchdog.stdout.take().expect("it is a pipe")).read_line(&mut number);
        let pid = told.ok().and_then(|_| number.trim().parse().ok()).and_then(Pid::from_raw);
        let process = pid.ok_or(rustix::io::Errno::SRCH).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let process = match process {
            Ok(process) => process,
            Err(error) => {
                drop(watchdog.stdin.take());
                drop(watchdog.wait());
                return Err(system("find the process of the server", error.into()));
            }
        };
        let server = Self { directory, address: ([127, 0, 0, 1], port).into(), heap_mib: heap, process, watchdog };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Waits until the server opens its port, which it does when it can serve requests.
    fn wait_until_ready(&self) -> Result<(), StartError> {
        let begin = Instant::now();
        loop {
            if TcpStream::connect(self.address).is_ok() {
                return Ok(());
            }
            if self.has_ended_within(Duration::from_millis(50))? {
                return Err(StartError::Failed { how: "has ended", log: self.end_of_log() });
            }
            if begin.elapsed() > START_LIMIT {
                return Err(StartError::Failed { how: "did not start in four minutes", log: self.end_of_log() });
            }
        }
    }

    /// Waits up to `limit` for the server's end. Returns whether it has ended.
    fn has_ended_within(&self, limit: Duration) -> Result<bool, StartError> {
        let limit = limit.try_into().expect("it is short");
        match rustix::event::poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&limit)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(system("wait for the server", error.into())),
        }
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Size of the Java heap, in MiB.
    pub fn heap_mib(&self) -> u64 {
        self.heap_mib
    }

    /// The server's directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The processor time and disk I/O of the server, if the system tells.
    pub fn used(&self) -> StoreUse {
        harness::cost::processes::used_below(self.watchdog.id()).map_or(StoreUse::Unknown, StoreUse::Server)
    }

    /// The last lines of its log.
    pub fn end_of_log(&self) -> String {
        let log = fs::read(self.directory.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Kills the server, as a crash would. Sessions may be in the middle of a request.
    ///
    /// # Errors
    ///
    /// Returns an error if the signal cannot be sent.
    pub fn kill(&self) -> io::Result<()> {
        rustix::process::pidfd_send_signal(&self.process, rustix::process::Signal::KILL)?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // A wait fails only if no process is left to wait for.
        drop(self.watchdog.wait());
    }
}

/// The folder of the jars for `what`: `server` or `stress`. CASSANDRA_LIB_DIR in the environment takes precedence
/// over its value when this program was built.
///
/// # Errors
///
/// [`StartError::NotFetched`] if the jars are missing.
pub fn jars(what: &str) -> Result<PathBuf, StartError> {
    let folder = std::env::var_os("CASSANDRA_LIB_DIR").or_else(|| option_env!("CASSANDRA_LIB_DIR").map(Into::into));
    let Some(folder) = folder else {
        return Err(StartError::NotFetched { missing: "CASSANDRA_LIB_DIR is not set".to_owned() });
    };
    let folder = Path::new(&folder).join(what);
    if !folder.is_dir() {
        return Err(StartError::NotFetched { missing: format!("there is no folder {}", folder.display()) });
    }
    Ok(folder)
}

/// Finds the program `java` of Java 17: through JAVA_HOME, through PATH, or where Debian keeps further versions.
///
/// # Errors
///
/// [`StartError::NoJava`] says what was found instead.
pub fn java() -> Result<PathBuf, StartError> {
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    let of_debian =
        fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|home| home.path().join("bin/java"));
    let mut found = "there is no java".to_owned();
    for java in home.into_iter().chain([PathBuf::from("java")]).chain(of_debian) {
        let Ok(output) = Command::new(&java).arg("-version").stdin(Stdio::null()).output() else { continue };
        let text = String::from_utf8_lossy(&output.stderr);
        match version_of_java(&text) {
            Some("17") => return Ok(java),
            Some(version) => found = format!("{} has version {version}", java.display()),
            None => {}
        }
    }
    Err(StartError::NoJava { found })
}

/// `openjdk version "17.0.15" 2025-04-15` → `17`.
fn version_of_java(text: &str) -> Option<&str> {
    text.lines().next()?.split_once("version \"")?.1.split(['.', '"', '-']).next()
}

/// The Java options that open the [`OPENED`] packages to all code.
pub(crate) fn opened() -> impl Iterator<Item = String> {
    OPENED.iter().flat_map(|package| {
        [format!("--add-opens={package}=ALL-UNNAMED"), format!("--add-exports={package}=ALL-UNNAMED")]
    })
}

/// The Java option `-Dname=value`.
pub(crate) fn of_java(name: &str, value: impl AsRef<OsStr>) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(format!("-D{name}="));
    option.push(value);
    option
}

/// Creates a directory if it is missing, and returns its absolute path. It must be empty or hold our data.
fn directory_of_ours(path: &Path) -> Result<PathBuf, StartError> {
    let failed = |source| system(&format!("use the directory {}", path.display()), source);
    fs::create_dir_all(path).map_err(failed)?;
    let path = fs::canonicalize(path).map_err(failed)?;
    let is_empty = fs::read_dir(&path).map_err(failed)?.next().is_none();
    let is_ours = || fs::read_to_string(path.join("cassandra.yaml")).is_ok_and(|text| text.starts_with(MARK));
    if is_empty || is_ours() { Ok(path) } else { Err(StartError::NotOurs(path)) }
}

/// Returns two free ports. They differ because both are open at the same time.
fn free_ports() -> Result<[u16; 2], StartError> {
    let failed = |source| system("find a free port of 127.0.0.1", source);
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0"));
    let mut ports = [0; 2];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener.and_then(|listener| listener.local_addr()).map_err(failed)?.port();
    }
    Ok(ports)
}

/// The server's settings file. Truncation makes no snapshot, which would keep the truncated rows on disk.
fn settings_text(directory: &Path, port: u16, storage_port: u16, synced: bool) -> String {
    let path = |name: &str| {
        let path = directory.join(name);
        // YAML doubles a quote inside single quotes.
        format!("'{}'", path.display().to_string().replace('\'', "''"))
    };
    let sync = match synced {
        true => "commitlog_sync: batch",
        false => "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms",
    };
    format!(
        "{MARK}\n\
         cluster_name: larch\n\
         num_tokens: 16\n\
         partitioner: org.apache.cassandra.dht.Murmur3Partitioner\n\
         data_file_directories: [{}]\n\
         commitlog_directory: {}\n\
         saved_caches_directory: {}\n\
         hints_directory: {}\n\
         cdc_raw_directory: {}\n\
         {sync}\n\
         auto_snapshot: false\n\
         truncate_request_timeout: 120000ms\n\
         endpoint_snitch: SimpleSnitch\n\
         seed_provider:\n\
         \x20 - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n\
         \x20   parameters: [{{seeds: '127.0.0.1:{storage_port}'}}]\n\
         listen_address: 127.0.0.1\n\
         rpc_address: 127.0.0.1\n\
         start_native_transport: true\n\
         native_transport_port: {port}\n\
         storage_port: {storage_port}\n",
        path("data"),
        path("commitlog"),
        path("saved_caches"),
        path("hints"),
        path("cdc_raw"),
    )
}

/// The server's logging configuration. Without it, the server logs each of its steps.
const LOGGING: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%date %-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"#;

fn system(what: &str, source: io::Error) -> StartError {
    StartError::System { what: what.to_owned(), source }
}
