//! Measures reads from far away: gets and a scan of a database with 1 GB of data and 64 MiB of cache, beside the
//! store's own client with the same number of requests in flight. Also measures how far a follower is behind.
//!
//! One store is in this process, with 5 ms for each request. The other one is MinIO, if `LARCH_MINIO` is the path of
//! its program.

use super::processes::{KEY, SECRET, Server};
use super::{connect, fill, value};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use larch::{Database, Follow, Table};
use larch_remote::trouble::{Trouble, TroubledStore};
use object_store::aws::AmazonS3Builder;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    ClientOptions, CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const LATENCY: Duration = Duration::from_millis(5);
const CACHE_BYTES: u64 = 64 << 20;
const DATA_BYTES: u64 = 1 << 30;
const VALUE_BYTES: usize = 400;
const ROWS: u32 = (DATA_BYTES / (VALUE_BYTES as u64 + 4)) as u32;

/// The bytes of a page, which a client must read for a single row.
const PAGE_BYTES: u64 = 16 << 10;

/// A store that measures how long its reads take until their last byte, and how many are in flight.
#[derive(Debug)]
struct MeteredStore {
    inner: Arc<dyn ObjectStore>,
    meter: Arc<Meter>,
}

#[derive(Debug, Default)]
struct Meter {
    gets: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
    under_way: AtomicU64,
    most_under_way: AtomicU64,
}

/// What was read in a measurement.
struct Reading {
    time: Duration,
    gets: f64,
    bytes: f64,
    /// The mean number of requests in flight, and the greatest.
    under_way: f64,
    most_under_way: u64,
}

impl Meter {
    /// Measures what is read while `work` runs.
    fn measure(&self, work: impl FnOnce()) -> Reading {
        let values = || [&self.gets, &self.bytes, &self.nanos].map(|value| value.load(Ordering::Relaxed));
        self.most_under_way.store(0, Ordering::Relaxed);
        let (before, begin) = (values(), Instant::now());
        work();
        let time = begin.elapsed();
        let after = values();
        let [gets, bytes, nanos] = [0, 1, 2].map(|place| (after[place] - before[place]) as f64);
        let under_way = nanos / time.as_nanos() as f64;
        Reading { time, gets, bytes, under_way, most_under_way: self.most_under_way.load(Ordering::Relaxed) }
    }
}

impl Reading {
    fn megabytes_per_second(&self) -> f64 {
        self.bytes / 1e6 / self.time.as_secs_f64()
    }
}

impl fmt::Display for MeteredStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait::async_trait]
impl ObjectStore for MeteredStore {
    async fn put_opts(&self, key: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(key, payload, options).await
    }

    async fn put_multipart_opts(&self, key: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> Result<GetResult> {
        if options.head {
            return self.inner.get_opts(key, options).await;
        }
        let (meter, begin) = (&self.meter, Instant::now());
        let now = meter.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        meter.most_under_way.fetch_max(now, Ordering::Relaxed);
        let read = async {
            let got = self.inner.get_opts(key, options).await?;
            let GetResult { meta, range, attributes, extensions, .. } = &got;
            let known = (meta.clone(), range.clone(), attributes.clone(), extensions.clone());
            Ok((known, got.into_stream().try_collect::<Vec<_>>().await?))
        };
        let read: Result<_> = read.await;
        meter.under_way.fetch_sub(1, Ordering::Relaxed);
        let ((meta, range, attributes, extensions), pieces) = read?;
        meter.gets.fetch_add(1, Ordering::Relaxed);
        meter.bytes.fetch_add(pieces.iter().map(|piece| piece.len() as u64).sum(), Ordering::Relaxed);
        meter.nanos.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let payload = GetResultPayload::Stream(futures_util::stream::iter(pieces.into_iter().map(Ok)).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn delete_stream(&self, keys: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// A store to be measured.
struct Far {
    name: &'static str,
    /// The same store without added latency.
    near: Arc<dyn ObjectStore>,
    far: Arc<dyn ObjectStore>,
    _server: Option<Server>,
}

/// The stores to be measured.
fn stores() -> Vec<Far> {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let slow = TroubledStore::new(Arc::clone(&memory), 1, Trouble { latency: LATENCY, ..Trouble::default() });
    let mut stores = vec![Far { name: "in process, 5 ms", near: memory, far: Arc::new(slow), _server: None }];
    if std::env::var_os("LARCH_MINIO").is_some() {
        let server = Server::minio();
        let store = AmazonS3Builder::new()
            .with_endpoint(server.endpoint())
            .with_client_options(ClientOptions::new().with_allow_http(true).with_pool_max_idle_per_host(512))
            .with_region("us-east-1")
            .with_bucket_name(server.bucket())
            .with_access_key_id(KEY)
            .with_secret_access_key(SECRET);
        let store: Arc<dyn ObjectStore> = Arc::new(store.build().expect("it is all there is to say"));
        stores.push(Far { name: "MinIO", near: Arc::clone(&store), far: store, _server: Some(server) });
    } else {
        println!("MinIO: LARCH_MINIO does not name its program");
    }
    stores
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn write_all(store: &Arc<dyn ObjectStore>) {
    let db = connect(store).builder().open().expect("it is made");
    let mut import = db.table("t").expect("a table").import().expect("the store works");
    (0..ROWS).for_each(|row| import.add(&key(row), &value(row, VALUE_BYTES)).expect("the store works"));
    import.finish(|_| {}).expect("the store works");
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system has room")
}

/// Gets random rows on one thread, with always `under_way` gets in flight.
fn get_rows(table: &Table, seed: u64, gets: u32, under_way: usize) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let rows: Vec<u32> = (0..gets).map(|_| rng.random_range(0..ROWS)).collect();
    let one = |row: u32| async move {
        let found = table.get_async(key(row)).await.expect("the store works");
        assert_eq!(found.map(|found| found.len()), Some(VALUE_BYTES));
    };
    runtime().block_on(futures_util::stream::iter(rows).map(one).buffer_unordered(under_way).for_each(|()| async {}));
}

/// Scans all rows and adds up the lengths of their values.
fn bytes_of_values(table: &Table) -> u64 {
    let (mut rows, mut bytes) = (table.range(..), 0);
    while let Some(batch) = rows.next_batch(usize::MAX).expect("the store works") {
        let values = batch.inline_parts(0).expect("short values lie in their pages");
        bytes += values.map(|value| value.len() as u64).sum::<u64>();
    }
    bytes
}

/// The objects of the database's SSTs.
fn objects(store: &Arc<dyn ObjectStore>) -> Vec<ObjectMeta> {
    let listed = store.list(Some(&Path::from("db/sst"))).try_collect();
    runtime().block_on(listed).expect("the store works")
}

/// Reads ranges by the store's own client on one thread, with always `under_way` reads in flight.
fn read_ranges(store: &Arc<dyn ObjectStore>, ranges: Vec<(Path, std::ops::Range<u64>)>, under_way: usize) {
    let one = |(path, range): (Path, std::ops::Range<u64>)| async move {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        store.get_opts(&path, options).await.expect("it is there").bytes().await.expect("it is there").len()
    };
    let read = futures_util::stream::iter(ranges).map(one).buffer_unordered(under_way).for_each(|_| async {});
    runtime().block_on(read);
}

/// Random ranges of `bytes` bytes.
fn random_ranges(objects: &[ObjectMeta], count: u32, bytes: u64) -> Vec<(Path, std::ops::Range<u64>)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let large: Vec<&ObjectMeta> = objects.iter().filter(|object| object.size > bytes).collect();
    let one = |_| {
        let object = large[rng.random_range(0..large.len())];
        let start = rng.random_range(0..object.size - bytes);
        (object.location.clone(), start..start + bytes)
    };
    (0..count).map(one).collect()
}

/// Divides all objects into ranges of `bytes` bytes.
fn all_ranges(objects: &[ObjectMeta], bytes: u64) -> Vec<(Path, std::ops::Range<u64>)> {
    let ranges = objects.iter().flat_map(|object| {
        let starts = (0..object.size).step_by(bytes as usize);
        starts.map(|start| (object.location.clone(), start..(start + bytes).min(object.size)))
    });
    ranges.collect()
}

/// Measures gets and a scan of 1 GB in `far`.
fn measure(far: &Far) {
    let meter = Arc::new(Meter::default());
    let metered = MeteredStore { inner: Arc::clone(&far.far), meter: Arc::clone(&meter) };
    let connection = connect(&(Arc::new(metered) as Arc<dyn ObjectStore>));
    let open = || connection.builder().read_only(true).cache_bytes(CACHE_BYTES).open().expect("it is there");
    let table_of = |db: &Database| db.existing_table("t").expect("the store works").expect("the table is there");
    let (name, objects) = (far.name, objects(&far.far));
    let db = open();
    let table = table_of(&db);
    // Brings the inner nodes into memory.
    get_rows(&table, 1, 40_000, 128);
    for under_way in [1, 16, 128, 256] {
        let gets = 300 * under_way as u32;
        let read = meter.measure(|| get_rows(&table, under_way as u64, gets, under_way));
        let rate = f64::from(gets) / read.time.as_secs_f64();
        let begin = Instant::now();
        read_ranges(&far.far, random_ranges(&objects, gets, PAGE_BYTES), under_way);
        let own = f64::from(gets) / begin.elapsed().as_secs_f64();
        println!(
            "{name}: {under_way} gets under way: {rate:.0} gets/s, {:.3} requests a get; its own client {own:.0} requests/s: {:.0} %",
            read.gets / f64::from(gets),
            100.0 * rate / own
        );
    }
    drop((table, db));
    let db = open();
    let table = table_of(&db);
    let read = meter.measure(|| assert_eq!(bytes_of_values(&table), u64::from(ROWS) * VALUE_BYTES as u64));
    let bytes = (read.bytes / read.gets) as u64;
    println!(
        "{name}: scan: {:.0} MB/s, {:.0} requests of {} KiB, {:.1} under way, {} at most",
        read.megabytes_per_second(),
        read.gets,
        bytes >> 10,
        read.under_way,
        read.most_under_way
    );
    for under_way in [read.under_way.ceil().max(1.0) as usize, read.most_under_way as usize] {
        let begin = Instant::now();
        read_ranges(&far.far, all_ranges(&objects, bytes), under_way);
        let own = objects.iter().map(|object| object.size).sum::<u64>() as f64 / 1e6 / begin.elapsed().as_secs_f64();
        let part = 100.0 * read.megabytes_per_second() / own;
        println!(
            "{name}: scan: its own client with {under_way} under way: {own:.0} MB/s; a scan has {part:.0} % of it"
        );
    }
}

/// Measures gets and scans on all stores.
pub fn reads() {
    for far in stores() {
        let begin = Instant::now();
        write_all(&far.near);
        println!("{}: {} MB in {:.1} s", far.name, DATA_BYTES / 1_000_000, begin.elapsed().as_secs_f64());
        measure(&far);
    }
}

/// Measures the time from the end of a commit until a follower sees it.
pub fn lag() {
    const COMMITS: u64 = 300;
    for Far { name, far, _server, .. } in stores() {
        let writer = connect(&far).builder().open().expect("it is made");
        fill(&writer, 1000, 100);
        let numbers = writer.table("numbers").expect("a table");
        numbers.insert("newest", 0_u64.to_le_bytes()).expect("the store works");
        let follower = connect(&far).builder().follow(Follow::Commits).open().expect("it is there");
        let followed = follower.existing_table("numbers").expect("the store works").expect("the table is there");
        let done: Arc<Vec<AtomicU64>> = Arc::new((0..=COMMITS).map(|_| AtomicU64::new(0)).collect());
        let (is_over, begin) = (AtomicBool::new(false), Instant::now());
        let mut lags = std::thread::scope(|scope| {
            let observer = scope.spawn(|| {
                let mut lags: Vec<Duration> = Vec::new();
                let mut seen = 0;
                while seen < COMMITS && !is_over.load(Ordering::Relaxed) {
                    let newest = followed.get("newest").expect("the store works").expect("it was inserted");
                    let newest = u64::from_le_bytes(newest.as_ref().try_into().expect("8 bytes"));
                    let now = begin.elapsed();
                    for number in seen + 1..=newest {
                        let end = Duration::from_nanos(done[number as usize].load(Ordering::Acquire));
                        // A follower that sees a commit before its writer knows that it is durable is not behind.
                        lags.push(if end.is_zero() { Duration::ZERO } else { now.saturating_sub(end) });
                    }
                    seen = newest;
                    std::thread::park_timeout(Duration::from_micros(200));
                }
                lags
            });
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
            for number in 1..=COMMITS {
                numbers.insert("newest", number.to_le_bytes()).expect("the store works");
                done[number as usize].store(begin.elapsed().as_nanos() as u64, Ordering::Release);
                // The follower looks at regular times, so commits come at random times.
                std::thread::park_timeout(Duration::from_micros(rng.random_range(0..60_000)));
            }
            std::thread::park_timeout(Duration::from_secs(5));
            is_over.store(true, Ordering::Relaxed);
            observer.join().expect("it does not panic")
        });
        lags.sort_unstable();
        let at = |part: f64| lags.get((lags.len() as f64 * part) as usize).copied().unwrap_or_default();
        println!(
            "{name}: a follower lags by {:.0} ms in the middle, {:.0} ms at p99, {:.0} ms at most, of {} commits",
            at(0.5).as_secs_f64() * 1e3,
            at(0.99).as_secs_f64() * 1e3,
            lags.last().copied().unwrap_or_default().as_secs_f64() * 1e3,
            lags.len()
        );
    }
}
