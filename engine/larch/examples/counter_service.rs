//! A service with counters, on axum: a GET shows a counter, a POST adds one to it. No handler blocks a thread of the
//! runtime, even if the database waits for the disk or for other work.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use larch::{Database, Table, Value};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

#[derive(Clone)]
struct Counters {
    db: Database,
    table: Table,
}

/// Wraps an error of the database, so that axum can make a response from it.
struct Failed(larch::Error);

impl From<larch::Error> for Failed {
    fn from(error: larch::Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let code =
            if self.0.is_retryable() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::INTERNAL_SERVER_ERROR };
        (code, self.0.to_string()).into_response()
    }
}

fn count(value: Option<Value>) -> u64 {
    value.and_then(|value| value.as_ref().try_into().ok()).map_or(0, u64::from_be_bytes)
}

async fn show(State(counters): State<Counters>, Path(name): Path<String>) -> Result<String, Failed> {
    Ok(count(counters.table.get_async(&name).await?).to_string())
}

async fn add(State(Counters { db, table }): State<Counters>, Path(name): Path<String>) -> Result<String, Failed> {
    let now = db
        .transact_async(async |mut tx| {
            let now = count(tx.get_for_update_async(&table, &name).await?) + 1;
            tx.insert(&table, &name, now.to_be_bytes())?;
            Ok::<_, larch::Error>(now)
        })
        .await?;
    Ok(now.to_string())
}

async fn remove(State(counters): State<Counters>, Path(name): Path<String>) -> Result<(), Failed> {
    counters.table.remove_async(&name).await?;
    Ok(())
}

/// Sends one request and returns the body of the answer.
fn request(service: SocketAddr, method: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(service)?;
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: counters\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let db = Database::open(&directory)?;
    let table = db.table("counters")?;
    let app = Router::new().route("/{name}", get(show).post(add).delete(remove)).with_state(Counters { db, table });

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().build()?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let service = listener.local_addr()?;
    let server = runtime.spawn(async move { axum::serve(listener, app).await });

    let visitors: Vec<_> =
        (0..8).map(|_| runtime.spawn_blocking(move || request(service, "POST", "/visits"))).collect();
    for visitor in visitors {
        println!("visit {}", runtime.block_on(visitor)??);
    }
    assert_eq!(request(service, "GET", "/visits")?, "8");
    request(service, "DELETE", "/visits")?;
    assert_eq!(request(service, "GET", "/visits")?, "0");

    server.abort();
    Ok(())
}
