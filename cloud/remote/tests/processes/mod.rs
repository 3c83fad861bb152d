//! S3 servers as processes on loopback. Dropping a server stops it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const KEY: &str = "larch-test-key";
pub const SECRET: &str = "larch-test-secret";
const BUCKET: &str = "larch";

/// How long a server may take to start.
const BEGIN: Duration = Duration::from_secs(60);

/// A server with one bucket.
pub struct Server {
    process: Child,
    port: u16,
    /// Where the server keeps its objects, if it keeps them on the disk.
    _directory: Option<tempfile::TempDir>,
}

impl Server {
    /// moto, a test server in Python, which keeps its objects in memory.
    pub fn moto() -> Server {
        let port = free_port();
        let mut command = Command::new("moto_server");
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        let server = Server::begin(command, port, None, "pip install 'moto[server]==5.2.5'");
        // The server does not check credentials.
        let answer = server.ask(&format!("PUT /{BUCKET} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200"), "moto makes no bucket: {answer}");
        server
    }

    /// MinIO, which keeps its objects in a directory.
    pub fn minio() -> Server {
        let port = free_port();
        let program = std::env::var_os("LARCH_MINIO").map_or_else(|| PathBuf::from("minio"), PathBuf::from);
        let mut command = Command::new(program);
        let directory = tempfile::tempdir().expect("there is room");
        // MinIO takes a directory of its drive as a bucket.
        std::fs::create_dir(directory.path().join(BUCKET)).expect("there is room");
        command.args(["server", "--quiet", "--address", &format!("127.0.0.1:{port}")]).arg(directory.path());
        command.env("MINIO_ROOT_USER", KEY).env("MINIO_ROOT_PASSWORD", SECRET).env("MINIO_BROWSER", "off");
        let how = "go install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c, and have $(go env GOPATH)/bin in \
                   PATH or its path in LARCH_MINIO";
        Server::begin(command, port, Some(directory), how)
    }

    fn begin(mut command: Command, port: u16, directory: Option<tempfile::TempDir>, how_to_install: &str) -> Server {
        let begun = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = begun.unwrap_or_else(|error| {
            panic!("{} cannot be started ({error}); install it: {how_to_install}", command.get_program().display())
        });
        let mut server = Server { process, port, _directory: directory };
        let begin = Instant::now();
        let alive = "GET /minio/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n";
        while !server.try_ask(alive).is_ok_and(|answer| answer.starts_with("HTTP/1.1 ")) {
            let ended = server.process.try_wait().expect("it is our process");
            assert!(ended.is_none(), "{} ended: {ended:?}", command.get_program().display());
            assert!(begin.elapsed() < BEGIN, "{} answers nothing", command.get_program().display());
            std::thread::park_timeout(Duration::from_millis(20));
        }
        server
    }

    fn try_ask(&self, request: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(format!("{request}Connection: close\r\n\r\n").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn ask(&self, request: &str) -> String {
        self.try_ask(request).expect("the server answers")
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// The environment variables for a process that uses this server.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", self.endpoint()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // These fail if the server has already ended.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
    listener.local_addr().expect("it is bound").port()
}
