//! What a store over `object_store` promises, in memory, with and without trouble.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "threads and real time, outside of the engine")]

mod promises;

use futures_util::stream::BoxStream;
use larch_remote::trouble::{Trouble, TroubledStore};
use larch_remote::{Patience, Place, RemoteStore};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult,
};
use os::Store;
use os::store::UNAVAILABLE;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

fn patience() -> Patience {
    Patience {
        first: Duration::from_secs(20),
        reads: Duration::from_secs(20),
        writes: Some(Duration::from_secs(20)),
        attempt: Duration::from_secs(5),
        stall: Duration::from_secs(5),
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(4),
    }
}

fn store(seed: u64, trouble: Trouble) -> RemoteStore {
    let troubled = TroubledStore::new(Arc::new(InMemory::new()), seed, trouble);
    RemoteStore::new(Place::within(Arc::new(troubled), "a/database"), patience()).expect("the system has threads")
}

const HARD: Trouble = Trouble {
    throttled: 50,
    lost_requests: 50,
    lost_answers: 50,
    duplicates: 50,
    torn_uploads: 0,
    stuck_uploads: 0,
    latency: Duration::ZERO,
};

#[test]
fn it_is_a_store() {
    promises::check(&store(1, Trouble::default()));
}

#[test]
fn a_directory_by_url_is_a_store() {
    let directory = tempfile::tempdir().expect("there is room");
    let url = format!("file://{}/db", directory.path().display());
    promises::check(&RemoteStore::of_url(&url).expect("it is a URL of a store"));
    assert!(directory.path().join("db/sst").is_dir(), "names are paths below the URL");
}

#[test]
fn answers_that_are_lost_and_requests_that_are_refused_are_made_good() {
    for seed in 0..20 {
        let store = store(seed, HARD);
        for number in 0..30 {
            let name = format!("sst/{number}");
            let bytes = vec![number; 5000];
            let mut upload = store.create(&name).expect("it is only prepared");
            upload.write(&bytes).and_then(|()| upload.finish()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(store.get(&name).expect("it is there"), bytes, "seed {seed}");
        }
        assert_eq!(store.list("sst").expect("it is tried again").len(), 30, "seed {seed}");
        (0..30).for_each(|number| store.remove(&format!("sst/{number}")).expect("it is tried again"));
        assert!(store.list("sst").expect("it is tried again").is_empty(), "seed {seed}");
        assert!(store.counts().retries > 0, "seed {seed}: there was trouble");
    }
}

#[test]
fn a_put_that_is_made_again_finds_its_own_object_and_nobody_elses() {
    for seed in 0..20 {
        let store = store(seed, HARD);
        for number in 0..50 {
            let name = format!("journal/{number}");
            let mine = format!("mine {seed} {number}");
            match store.put_if_absent(&name, mine.as_bytes()) {
                Ok(()) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::AlreadyExists, "seed {seed}: {error}"),
            }
            // Nobody else puts this object, so it exists now even if the put failed. A second put must be refused.
            assert_eq!(store.get(&name).expect("it is there"), mine.as_bytes(), "seed {seed}");
            let other = store.put_if_absent(&name, b"another").expect_err("the name is taken");
            assert_eq!(other.kind(), ErrorKind::AlreadyExists);
            assert_eq!(store.get(&name).expect("it is there"), mine.as_bytes(), "seed {seed}");
        }
    }
}

#[test]
fn an_upload_that_breaks_off_is_reported_and_leaves_nothing() {
    let store = store(3, Trouble { torn_uploads: 1000, ..Trouble::default() });
    let mut upload = store.create("sst/large").expect("it is only prepared");
    upload.write(&vec![7; 20 << 20]).expect("the parts are sent");
    let error = upload.finish().expect_err("it breaks off");
    assert!(error.to_string().contains("a/database/sst/large"), "{error}");
    assert_eq!(store.len("sst/large").expect_err("nothing is there").kind(), ErrorKind::NotFound);
}

#[test]
fn an_upload_whose_end_has_no_answer_is_given_up_at_the_deadline() {
    let stuck = Trouble { stuck_uploads: 1000, ..Trouble::default() };
    let troubled = TroubledStore::new(Arc::new(InMemory::new()), 3, stuck);
    let patience = Patience { reads: Duration::from_millis(200), attempt: Duration::from_millis(50), ..patience() };
    let store = RemoteStore::new(Place::within(Arc::new(troubled), "p"), patience).expect("the system has threads");
    let mut upload = store.create("sst/large").expect("it is only prepared");
    upload.write(&vec![7; 20 << 20]).expect("the parts are sent");
    let error = upload.finish().expect_err("it has no answer");
    assert_eq!(error.kind(), UNAVAILABLE);
    assert!(error.to_string().contains("p/sst/large") && error.to_string().contains("within 0.2 s"), "{error}");
}

#[test]
fn a_store_that_never_answered_is_given_up_soon_and_the_error_has_the_cause() {
    let troubled = TroubledStore::new(Arc::new(InMemory::new()), 1, Trouble { throttled: 1000, ..Trouble::default() });
    let patience = Patience { first: Duration::from_millis(50), writes: None, ..patience() };
    let store = RemoteStore::new(Place::within(Arc::new(troubled), "p"), patience).expect("the system has threads");
    let error = store.put_if_absent("sst/1", b"x").expect_err("it is always refused");
    assert!(error.to_string().contains("p/sst/1") && error.to_string().contains("SlowDown"), "{error}");
}

/// A store that refuses all requests while a switch is on.
#[derive(Debug)]
struct Switched {
    inner: InMemory,
    away: Arc<AtomicBool>,
    refused: Arc<AtomicU64>,
}

impl Switched {
    fn check(&self) -> object_store::Result<()> {
        if !self.away.load(Ordering::SeqCst) {
            return Ok(());
        }
        // The store comes back after some refused requests.
        if self.refused.fetch_add(1, Ordering::SeqCst) == 20 {
            self.away.store(false, Ordering::SeqCst);
        }
        Err(object_store::Error::Generic { store: "switched store", source: "it is away".into() })
    }
}

impl std::fmt::Display for Switched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a store that may be away")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Switched {
    async fn put_opts(&self, key: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        self.check()?;
        self.inner.put_opts(key, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        key: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.check()?;
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.check()?;
        self.inner.get_opts(key, options).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[test]
fn writes_wait_for_a_store_that_was_there_and_reads_end_at_their_limit() {
    let (away, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let switched = Switched { inner: InMemory::new(), away: away.clone(), refused: refused.clone() };
    // Reads are not repeated, because their time is up at once. Writes have no time limit.
    let patience = Patience { reads: Duration::ZERO, writes: None, ..patience() };
    let store = RemoteStore::new(Place::within(Arc::new(switched), "p"), patience).expect("the system has threads");
    store.put_if_absent("journal/1", b"one").expect("the store is there");
    away.store(true, Ordering::SeqCst);
    let error = store.get("journal/1").expect_err("the store is away");
    assert!(error.kind() == UNAVAILABLE && error.to_string().contains("it is away"), "{error}");
    store.put_if_absent("journal/2", b"two").expect("the store came back while the writer waited");
    assert_eq!(refused.load(Ordering::SeqCst), 21, "one read and twenty attempts of the write");
    assert_eq!(store.get("journal/2").expect("the store is there"), b"two");
}

#[test]
fn patience_ends_at_its_deadline_and_the_error_names_the_object() {
    let troubled = TroubledStore::new(Arc::new(InMemory::new()), 1, Trouble { throttled: 1000, ..Trouble::default() });
    let patience = Patience { first: Duration::from_millis(50), ..patience() };
    let store = RemoteStore::new(Place::within(Arc::new(troubled), "p"), patience).expect("the system has threads");
    let error = store.get("sst/1").expect_err("it is always refused");
    assert!(error.to_string().contains("p/sst/1") && error.to_string().contains("SlowDown"), "{error}");
}

#[test]
fn the_end_of_a_read_may_ask_the_store_again() {
    let store = Arc::new(store(1, Trouble::default()));
    store.put_if_absent("sst/1", &[7; 100]).expect("the name is free");
    let (sender, receiver) = mpsc::channel();
    // More requests than the event loop has threads.
    for _ in 0..16 {
        let (sender, again) = (sender.clone(), store.clone());
        let done = move |read: std::io::Result<&[&[u8]]>| {
            let first = read.expect("it is there").concat().len();
            sender.send((first, again.get("sst/1").expect("it is there").len())).expect("the test waits");
        };
        store.begin_read("sst/1", 0..10, Box::new(done));
    }
    drop(sender);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [(10, 100); 16]);
}

#[test]
fn reads_that_are_under_way_end_when_the_store_is_dropped() {
    let store = store(1, Trouble { latency: Duration::from_secs(3600), ..Trouble::default() });
    let (sender, receiver) = mpsc::channel();
    for _ in 0..10 {
        let sender = sender.clone();
        let done = move |read: std::io::Result<&[&[u8]]>| sender.send(read.is_err()).expect("the test waits");
        store.begin_read("sst/1", 0..10, Box::new(done));
    }
    drop((store, sender));
    assert_eq!(receiver.iter().filter(|failed| *failed).count(), 10);
}
