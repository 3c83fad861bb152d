//! A store for the engine, over `object_store`. This module does not know what the objects hold.
//!
//! Requests run in an event loop of a few threads that the store owns. The caller may be a thread of any kind, even
//! one of another executor, because it never enters the loop; the loop wakes it when the answer is there.

use crate::counts::Kind;
use crate::event_loop::{begin_thread, wait_in};
use crate::failure::{Refused, may_be_of_range};
use crate::patience::{Patience, Patient, Request, no_answer};
use crate::shared::Shared;
use crate::upload::RemoteUpload;
use crate::url::Place;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, GetResult, GetResultPayload, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
};
use os::store::{Bill, Counts, Price, PutDone, RangeDone};
use os::sync::atomic::Ordering;
use os::sync::{Arc, OnceLock};
use os::{Store, StoredObject, Upload};
use std::fmt;
use std::io;
use std::ops::Range;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Threads of the event loop. TLS and copying keep one of them busy at some hundred MB/s.
const LOOP_THREADS: usize = 2;

/// The longest object that is read as a whole: a sheet of a journal with a piece of a log.
const LONGEST_WHOLE: u64 = 128 << 20;

/// Shorter pieces of an answer are joined, because each piece may keep a whole buffer of its connection alive.
const SHORT_PIECE_BYTES: usize = 32 << 10;

/// A store over `object_store`.
pub struct RemoteStore {
    shared: Arc<Shared>,
    /// `None` only during the drop.
    event_loop: Option<Runtime>,
    price: OnceLock<Price>,
}

impl Shared {
    /// Reads a range of an object, which may end within the range or before it. Returns the bytes in pieces, as
    /// they came.
    async fn get_range(&self, name: &str, range: Range<u64>) -> io::Result<Vec<Bytes>> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let key = self.key(name);
        let (key, range) = (&key, &range);
        let got = self.patient.ask(Request::Read(range.end - range.start), |stall| async move {
            self.count(Kind::Get);
            let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
            let error = match within(stall, self.place.store.get_opts(key, options)).await {
                Ok(got) => return pieces_of(got, stall).await,
                Err(error) => error,
            };
            // Stores refuse a range that begins at the end of the object, each in its own words.
            if may_be_of_range(&error) {
                self.count(Kind::Get);
                let head = self.place.store.head(key).await;
                if head.is_ok_and(|head| head.size <= range.start) {
                    return Ok(Vec::new());
                }
            }
            Err(error)
        });
        let pieces = got.await.map_err(|refused| self.failed("read", key, &refused))?;
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.counters.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(pieces)
    }
}

impl RemoteStore {
    /// A store at `place`.
    ///
    /// # Errors
    ///
    /// An error of the system if it has no threads for the event loop.
    pub fn new(place: Place, patience: Patience) -> io::Result<RemoteStore> {
        let event_loop = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(LOOP_THREADS)
            .thread_name("larch-remote")
            .on_thread_start(begin_thread)
            .enable_all()
            .build()?;
        let counts_asked = place.counters.is_none();
        let counters = place.counters.clone().unwrap_or_default();
        let patient = Patient::new(patience, counters.clone());
        let shared = Arc::new(Shared { place, patient, counters, counts_asked });
        Ok(RemoteStore { shared, event_loop: Some(event_loop), price: OnceLock::new() })
    }

    /// The store that a URL names.
    ///
    /// # Errors
    ///
    /// The errors of [`Place::of_url`], [`Patience::of_environment`] and [`RemoteStore::new`].
    pub fn of_url(url: &str) -> io::Result<RemoteStore> {
        RemoteStore::new(Place::of_url(url)?, Patience::of_environment()?)
    }

    /// The store's location.
    pub fn place(&self) -> &Place {
        &self.shared.place
    }

    /// The requests and bytes so far.
    pub fn counts(&self) -> Counts {
        self.shared.counters.get()
    }

    /// Sets the prices of requests, for [metrics](larch::stats::Metrics::store) and explanations. Only the first
    /// call has an effect.
    pub fn set_price(&self, price: Price) {
        self.price.get_or_init(|| price);
    }

    fn event_loop(&self) -> &Runtime {
        self.event_loop.as_ref().expect("it is there until the store is dropped")
    }

    /// Runs a request in the event loop and waits for it.
    fn wait<T: Send + 'static>(&self, request: impl Future<Output = io::Result<T>> + Send + 'static) -> io::Result<T> {
        wait_in(self.event_loop().handle(), request)
    }
}

impl Store for RemoteStore {
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        Ok(Box::new(RemoteUpload::new(Arc::clone(&self.shared), self.event_loop().handle().clone(), name)))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (shared, name, bytes) = (Arc::clone(&self.shared), name.to_owned(), PutPayload::from(bytes.to_vec()));
        self.wait(async move { shared.put(&name, bytes, PutMode::Create).await.map(drop) })
    }

    fn begin_put_if_absent(&self, name: &str, bytes: Vec<u8>, done: PutDone) {
        let (shared, name, bytes) = (Arc::clone(&self.shared), name.to_owned(), PutPayload::from(bytes));
        self.event_loop().spawn(async move { done(shared.put(&name, bytes, PutMode::Create).await.map(drop)) });
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        self.wait(async move {
            let key = shared.key(&name);
            let (shared, key) = (&*shared, &key);
            let got = shared.patient.ask(Request::Read(LONGEST_WHOLE), |stall| async move {
                shared.count(Kind::Get);
                let got = within(stall, shared.place.store.get(key)).await?;
                let bytes = got.meta.size;
                let pieces = pieces_of(got, stall).await?.concat();
                // An answer that ends early is not the whole object.
                if pieces.len() as u64 == bytes { Ok(pieces) } else { Err(short_answer(pieces.len(), bytes)) }
            });
            let bytes = got.await.map_err(|refused| shared.failed("read", key, &refused))?;
            shared.counters.read_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            Ok(bytes)
        })
    }

    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        let range = offset..offset + buffer.len() as u64;
        let bytes = self.wait(async move { shared.get_range(&name, range).await })?.concat();
        let read = bytes.len().min(buffer.len());
        buffer[..read].copy_from_slice(&bytes[..read]);
        Ok(read)
    }

    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        let read = ReadToEnd(Some(done));
        self.event_loop().spawn(async move {
            let outcome = shared.get_range(&name, range).await;
            read.end(outcome);
        });
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        self.wait(async move {
            let key = shared.key(&name);
            let head = shared.patient.ask(Request::Read(0), |_| {
                shared.count(Kind::Get);
                shared.place.store.head(&key)
            });
            head.await.map(|head| head.size).map_err(|refused| shared.failed("look for", &key, &refused))
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        self.wait(async move {
            let key = shared.key(&name);
            let removed = shared.patient.ask(Request::Read(0), |_| {
                shared.count(Kind::Delete);
                shared.place.store.delete(&key)
            });
            match removed.await {
                Ok(()) | Err(Refused { error: Error::NotFound { .. }, .. }) => Ok(()),
                Err(refused) => Err(shared.failed("remove", &key, &refused)),
            }
        })
    }

    fn bill(&self) -> Option<Bill> {
        Some(Bill { counts: self.counts(), price: self.price.get().copied() })
    }

    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        let (shared, folder) = (Arc::clone(&self.shared), folder.trim_end_matches('/').to_owned());
        self.wait(async move {
            let key = shared.key(&folder);
            let listed = shared.patient.ask(Request::Read(0), |_| {
                shared.count(Kind::List);
                shared.place.store.list(Some(&key)).try_collect::<Vec<_>>()
            });
            let listed = listed.await.map_err(|refused| shared.failed("list", &key, &refused))?;
            let mut objects: Vec<StoredObject> = listed
                .into_iter()
                .filter_map(|object| {
                    let name = object.location.filename().filter(|_| is_in(&object.location, &key))?;
                    Some(StoredObject { name: format!("{folder}/{name}"), bytes: object.size })
                })
                .collect();
            objects.sort();
            Ok(objects)
        })
    }
}

/// Waits at most `time` for an answer to begin, or for its next piece.
async fn within<T>(time: Duration, answer: impl Future<Output = object_store::Result<T>>) -> object_store::Result<T> {
    tokio::time::timeout(time, answer).await.unwrap_or_else(|_| Err(no_answer(time)))
}

/// The error for an answer that ended before the object did.
fn short_answer(came: usize, expected: u64) -> Error {
    let why = io::Error::new(io::ErrorKind::UnexpectedEof, format!("{came} bytes of {expected} came"));
    Error::Generic { store: "object store", source: why.into() }
}

/// Collects the bytes of an answer, whose pieces must each come within `stall`. Long pieces are not joined, because
/// the caller copies them to many places.
async fn pieces_of(got: GetResult, stall: Duration) -> object_store::Result<Vec<Bytes>> {
    // A file is read as a whole, because its stream would give only small pieces.
    if !matches!(got.payload, GetResultPayload::Stream(_)) {
        return Ok(vec![got.bytes().await?]);
    }
    let (mut stream, mut pieces, mut short) = (got.into_stream(), Vec::new(), Vec::new());
    while let Some(piece) = within(stall, stream.try_next()).await? {
        if piece.len() < SHORT_PIECE_BYTES {
            short.extend_from_slice(&piece);
            continue;
        }
        if !short.is_empty() {
            pieces.push(std::mem::take(&mut short).into());
        }
        pieces.push(piece);
    }
    if !short.is_empty() {
        pieces.push(short.into());
    }
    Ok(pieces)
}

/// Whether an object lies directly in a folder, and not in a folder below it.
fn is_in(object: &Path, folder: &Path) -> bool {
    object.prefix_match(folder).is_some_and(|rest| rest.count() == 1)
}

/// A read whose end is reported even if its task is dropped or panics.
struct ReadToEnd(Option<RangeDone>);

impl ReadToEnd {
    fn end(mut self, outcome: io::Result<Vec<Bytes>>) {
        let done = self.0.take().expect("a read ends once");
        match outcome {
            Ok(pieces) => done(Ok(&pieces.iter().map(|piece| &piece[..]).collect::<Vec<_>>())),
            Err(error) => done(Err(error)),
        }
    }
}

impl Drop for ReadToEnd {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(io::Error::other("the event loop ended before the read did")));
        }
    }
}

impl Drop for RemoteStore {
    fn drop(&mut self) {
        if let Some(event_loop) = self.event_loop.take() {
            // The store may be dropped by a task of any executor, which may not wait for the threads.
            event_loop.shutdown_background();
        }
    }
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { bucket, prefix, .. } = &self.shared.place;
        f.debug_struct("RemoteStore").field("bucket", bucket).field("prefix", &prefix.as_ref()).finish_non_exhaustive()
    }
}
