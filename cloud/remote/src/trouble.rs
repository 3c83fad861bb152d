//! A store for tests, around any `object_store`, that makes trouble on request: it is slow, refuses requests, loses
//! requests and answers, does things twice, and breaks uploads off. This module does not know what the objects
//! hold. A seed and the order of the requests decide which of them have trouble.

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many of a thousand requests have each kind of trouble, and how slow requests are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    /// The store refuses the request, for now.
    pub throttled: u32,
    /// The request is not carried out, and the client gets an error.
    pub lost_requests: u32,
    /// The request is carried out, but the client gets an error.
    pub lost_answers: u32,
    /// A put is carried out twice, and the client gets the second answer.
    pub duplicates: u32,
    /// The end of an upload in parts fails, and no object is made.
    pub torn_uploads: u32,
    /// The end of an upload in parts, or the removal of its parts, never gets an answer, and the object does not
    /// exist.
    pub stuck_uploads: u32,
    /// Time that each request takes in addition to the store's own.
    pub latency: Duration,
}

/// A store that has trouble.
#[derive(Debug)]
pub struct TroubledStore {
    inner: Arc<dyn ObjectStore>,
    source: Arc<Source>,
}

/// Decides which requests have trouble.
#[derive(Debug)]
struct Source {
    trouble: Trouble,
    rng: Mutex<Xoshiro256PlusPlus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Good,
    LostAnswer,
    Duplicate,
}

impl Source {
    fn happens(&self, in_a_thousand: u32) -> bool {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        in_a_thousand > 0 && rng.random_range(0..1000) < in_a_thousand
    }

    /// Delays the request, and fails it or decides its fate.
    async fn begin(&self) -> Result<Fate> {
        if !self.trouble.latency.is_zero() {
            tokio::time::sleep(self.trouble.latency).await;
        }
        if self.happens(self.trouble.throttled) {
            return Err(failed("SlowDown"));
        }
        if self.happens(self.trouble.lost_requests) {
            return Err(failed("the connection was closed before the request was sent"));
        }
        Ok(if self.happens(self.trouble.lost_answers) {
            Fate::LostAnswer
        } else if self.happens(self.trouble.duplicates) {
            Fate::Duplicate
        } else {
            Fate::Good
        })
    }
}

fn failed(why: &str) -> Error {
    Error::Generic { store: "troubled store", source: why.into() }
}

/// What the client learns of an answer.
fn answer<T>(fate: Fate, answer: Result<T>) -> Result<T> {
    if fate == Fate::LostAnswer { Err(failed("the connection was closed before the answer came")) } else { answer }
}

impl TroubledStore {
    /// The store `inner` with trouble that follows from `seed`.
    pub fn new(inner: Arc<dyn ObjectStore>, seed: u64, trouble: Trouble) -> TroubledStore {
        let rng = Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed));
        TroubledStore { inner, source: Arc::new(Source { trouble, rng }) }
    }
}

impl fmt::Display for TroubledStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with trouble", self.inner)
    }
}

#[async_trait::async_trait]
impl ObjectStore for TroubledStore {
    async fn put_opts(&self, key: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let fate = self.source.begin().await?;
        let put = self.inner.put_opts(key, payload.clone(), options.clone()).await;
        let put = if fate == Fate::Duplicate { self.inner.put_opts(key, payload, options).await } else { put };
        answer(fate, put)
    }

    async fn put_multipart_opts(&self, key: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.source.begin().await?;
        let inner = self.inner.put_multipart_opts(key, options).await?;
        Ok(Box::new(TroubledUpload { inner, source: Arc::clone(&self.source) }))
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> Result<GetResult> {
        let fate = self.source.begin().await?;
        answer(fate, self.inner.get_opts(key, options).await)
    }

    fn delete_stream(&self, keys: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, source) = (Arc::clone(&self.inner), Arc::clone(&self.source));
        keys.then(move |key| {
            let (inner, source) = (Arc::clone(&inner), Arc::clone(&source));
            async move {
                let fate = source.begin().await?;
                let key = key?;
                let one = futures_util::stream::iter([Ok(key)]).boxed();
                let removed = inner.delete_stream(one).next().await.unwrap_or_else(|| Err(failed("no answer")));
                answer(fate, removed)
            }
        })
        .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (source, listed) = (Arc::clone(&self.source), self.inner.list(prefix));
        let begun = futures_util::stream::once(async move { answer(source.begin().await?, Ok(())) });
        let trouble = begun.filter_map(|begun: Result<()>| async move { begun.err().map(Err) });
        trouble.chain(listed).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let fate = self.source.begin().await?;
        answer(fate, self.inner.list_with_delimiter(prefix).await)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let fate = self.source.begin().await?;
        answer(fate, self.inner.copy_opts(from, to, options).await)
    }
}

#[derive(Debug)]
struct TroubledUpload {
    inner: Box<dyn MultipartUpload>,
    source: Arc<Source>,
}

#[async_trait::async_trait]
impl MultipartUpload for TroubledUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (source, part) = (Arc::clone(&self.source), self.inner.put_part(data));
        Box::pin(async move {
            let fate = source.begin().await?;
            answer(fate, part.await)
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let fate = self.source.begin().await?;
        if self.source.happens(self.source.trouble.torn_uploads) {
            return Err(failed("the upload broke off"));
        }
        if self.source.happens(self.source.trouble.stuck_uploads) {
            return std::future::pending().await;
        }
        answer(fate, self.inner.complete().await)
    }

    async fn abort(&mut self) -> Result<()> {
        if self.source.happens(self.source.trouble.stuck_uploads) {
            return std::future::pending().await;
        }
        self.inner.abort().await
    }
}
