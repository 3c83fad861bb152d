//! Serves one page over HTTP/1.1. The page is made anew for each request. One thread is enough for the requests,
//! because only one program asks, every few seconds. This module does not know what the page says.

use crate::failure::Failure;
use crate::listen::listen;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the server waits for a client that sends nothing, before it turns to other clients.
const PATIENCE: Duration = Duration::from_secs(2);
/// The greatest length of the head of a request.
const LONGEST_HEAD: usize = 8 << 10;

/// A server that answers until it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `address`, and answers with the text that `page` makes.
    pub(super) fn start(address: &str, page: impl Fn() -> String + Send + 'static) -> Result<Self, Failure> {
        let refused = |why: &str| Failure::session("target", format!("--metrics {address}: {why}"));
        let listener = listen("--metrics", address)?;
        let address = listener.local_addr().map_err(|error| refused(&error.to_string()))?;
        let ends = Arc::new(AtomicBool::new(false));
        let until = ends.clone();
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            for connection in listener.incoming() {
                if until.load(Ordering::Relaxed) {
                    return;
                }
                // A client that closes its connection too early gets no answer, and asks again.
                connection.and_then(|connection| answer(connection, &page)).unwrap_or_default();
            }
        });
        let thread = thread.map_err(|error| Failure::session("thread", format!("cannot start a thread: {error}")))?;
        Ok(Self { address, ends, thread: Some(thread) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // The thread waits for a connection, so this code makes a connection to wake it.
        let mut here = self.address;
        if here.ip().is_unspecified() {
            here.set_ip(if here.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        if TcpStream::connect_timeout(&here, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // A panic in the thread has been printed, and affects only the page.
            thread.join().unwrap_or_default();
        }
    }
}

fn answer(mut connection: TcpStream, page: &dyn Fn() -> String) -> std::io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let head = head(&mut connection)?;
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = path.split('?').next().unwrap_or("");
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics" | "/") => ("200 OK", page()),
        ("GET" | "HEAD", _) => ("404 Not Found", "ask for /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET /metrics\n".to_owned()),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = body.len();
    let mut text =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    if method != "HEAD" {
        text.push_str(&body);
    }
    connection.write_all(text.as_bytes())
}

/// The lines of a request before the empty line.
fn head(connection: &mut TcpStream) -> std::io::Result<String> {
    let (mut head, until) = (Vec::new(), Instant::now() + PATIENCE);
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = connection.read(&mut piece)?;
        head.extend_from_slice(&piece[..length]);
        if length == 0 || head.len() > LONGEST_HEAD || Instant::now() > until {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
