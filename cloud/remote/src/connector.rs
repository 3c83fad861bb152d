//! Counts the requests that are really sent by HTTP, each attempt separately, and notes the status of each answer.
//! All that this module knows about the purpose of a request is its method and query.

use crate::counts::{Counters, Kind};
use crate::last_answer::LastAnswer;
use crate::patience::Patience;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Connects as `object_store` does by default, and counts requests.
#[derive(Debug)]
pub struct CountingConnector {
    pub counters: Arc<Counters>,
}

/// Whether a request removes several objects at once, in S3's form.
fn is_removal(request: &HttpRequest) -> bool {
    request
        .uri()
        .query()
        .is_some_and(|query| query == "delete" || query.starts_with("delete&") || query.starts_with("delete="))
}

/// Whether a request asks for a listing. All three providers mark it by a parameter of the query.
fn is_listing(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query
        .split('&')
        .any(|field| field.starts_with("list-type=") || field == "comp=list" || field.starts_with("prefix="))
}

impl HttpConnector for CountingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(CountingService { inner, counters: Arc::clone(&self.counters) }))
    }
}

#[derive(Debug)]
struct CountingService {
    inner: HttpClient,
    counters: Arc<Counters>,
}

#[async_trait::async_trait]
impl HttpService for CountingService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let kind = match request.method().as_str() {
            "GET" | "HEAD" if is_listing(&request) => Kind::List,
            "GET" | "HEAD" => Kind::Get,
            "DELETE" => Kind::Delete,
            "POST" if is_removal(&request) => Kind::Delete,
            _ => Kind::Put,
        };
        self.counters.count(kind);
        LastAnswer::note(None);
        // This is the only time limit of a task that sends a part of an upload.
        let limit = Patience::default().attempt_with(request.body().content_length() as u64);
        let answer = match tokio::time::timeout(limit, self.inner.execute(request)).await {
            Ok(answer) => answer?,
            Err(_) => {
                let why = format!("no answer within {} s", limit.as_secs());
                return Err(HttpError::new(HttpErrorKind::Timeout, io::Error::new(ErrorKind::TimedOut, why)));
            }
        };
        LastAnswer::note(Some(answer.status().as_u16()));
        Ok(answer)
    }
}
