//! What all parts of the cold report share: the engines, their filled databases, and the processes that open them.

use super::{MIB, ROW_BYTES};
use crate::args::PeersArgs;
use crate::peers::herd::Peer;
use crate::peers::memory_limit::MemoryLimit;
use crate::peers::orders::{Fill, Order, Sample};
use crate::peers::table::Table;
use crate::peers::{self, Tale, check_room, disk, failed, fio, place};
use harness::Scheme;
use kit::Scratch;

/// The memory limit of a process, with the page cache of its files.
const LIMIT_BYTES: u64 = 256 * MIB;

/// An engine with its options.
#[derive(Clone, Copy, Debug)]
pub struct ColdEngine {
    /// The name of the engine in tables.
    pub name: &'static str,
    pub scheme: &'static str,
    pub options: &'static str,
    pub cache_bytes: u64,
    /// The engine whose database this one reads, if it has none of its own.
    pub of: Option<&'static str>,
}

const fn engine(name: &'static str, scheme: &'static str, options: &'static str, cache_bytes: u64) -> ColdEngine {
    ColdEngine { name, scheme, options, cache_bytes, of: None }
}

/// Larch comes first: the goals are those of the first engine.
pub const ENGINES: [ColdEngine; 11] = [
    engine("larch 16K", "larch", "cache=64MiB&page=16KiB", 64 * MIB),
    ColdEngine {
        of: Some("larch 16K"),
        ..engine("larch 16K, 16 MiB", "larch", "cache=16MiB&page=16KiB&read_only=1", 16 * MIB)
    },
    engine("larch 4K", "larch", "cache=64MiB&page=4KiB", 64 * MIB),
    engine("rocksdb 16K", "rocksdb", "cache=64MiB&page=16KiB&index=default&direct=1", 64 * MIB),
    engine("rocksdb parts 16K", "rocksdb", "cache=64MiB&page=16KiB&index=partitioned&direct=1", 64 * MIB),
    engine("rocksdb parts 4K, 16 MiB", "rocksdb", "cache=16MiB&page=4KiB&index=partitioned&direct=1", 16 * MIB),
    engine("fjall", "fjall", "cache=64MiB", 64 * MIB),
    engine("redb", "redb", "cache=64MiB", 64 * MIB),
    engine("lmdb", "lmdb", "readahead=0", 0),
    engine("disk 16K", "disk", "page=16KiB", 0),
    ColdEngine { of: Some("disk 16K"), ..engine("fio 16K", "fio", "page=16KiB", 0) },
];

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct ColdScale {
    pub records: u64,
    pub repeats: usize,
    pub warmup_millis: u64,
    pub millis: u64,
}

impl ColdScale {
    fn of(args: &PeersArgs) -> Self {
        match args.quick {
            true => Self { records: args.records.unwrap_or(1_000_000), repeats: 1, warmup_millis: 500, millis: 1_000 },
            false => {
                Self { records: args.records.unwrap_or(32_000_000), repeats: 3, warmup_millis: 1_000, millis: 2_500 }
            }
        }
    }
}

/// The filled databases, which are removed when this is dropped.
pub struct Ground {
    pub scale: ColdScale,
    /// The engines that this binary has, and the stores that measure the disk alone.
    pub engines: Vec<ColdEngine>,
    /// The engines that this binary lacks, each with how to get it.
    pub absent: Vec<String>,
    /// The text before the tables.
    pub head: String,
    pub tale: Tale,
    schemes: Vec<Scheme>,
    place: Scratch,
}

impl Ground {
    /// Fills the databases, each in its own process and without a memory limit.
    pub fn prepare(args: &PeersArgs, schemes: &[Scheme]) -> Result<Self, String> {
        let scale = ColdScale::of(args);
        let fio_version = fio::version();
        let is_here = |engine: &ColdEngine| match engine.scheme {
            "disk" => true,
            "fio" => fio_version.is_some(),
            scheme => schemes.iter().any(|known| known.name == scheme),
        };
        let engines: Vec<ColdEngine> = ENGINES.into_iter().filter(is_here).collect();
        let mut absent = peers::absent(&built(), schemes);
        if fio_version.is_none() {
            absent.push("fio, which is not installed: Debian has it in the package fio".to_owned());
        }
        let place = place(args.dir.as_deref(), "bench-cold")?;
        // redb takes one and a half times the size of the rows. While a database is filled or rewritten, it holds a
        // second copy of them.
        let databases = engines.iter().filter(|engine| engine.of.is_none()).count() as u64;
        check_room(&place, (databases + 2) * scale.records * 150)?;
        let mut ground =
            Self { scale, engines, absent, head: String::new(), tale: Tale::new(), schemes: schemes.to_vec(), place };
        ground.head = format!(
            "{} records of 20-byte keys and 100-byte values, {} {} of {:.1} s\n\n",
            scale.records,
            scale.repeats,
            if scale.repeats == 1 { "repeat" } else { "repeats" },
            scale.millis as f64 / 1e3
        );
        match fio_version {
            Some(version) => ground.head.push_str(&format!("* fio is {version}\n")),
            None => ground.note(
                "fio is not here (Debian has it in the package fio): goals against the disk are looked at with reads of \
                 our own by waiting threads, and the disk's sequential rate is not measured",
            ),
        }
        for engine in ground.engines.clone() {
            let directory = ground.place.join(engine.of.unwrap_or(engine.name));
            if engine.of.is_none() {
                let made = make(&engine, &ground.target(&engine, ""), scale.records)?;
                let file_mib = made.file_bytes >> 20;
                ground.tale.tell(&format!("{} is filled and has no background work left: {file_mib} MiB", engine.name));
                disk::forget(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
                let list: Vec<String> = made.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
                ground.head.push_str(&format!("* {}: {}; {file_mib} MiB on disk\n", engine.name, list.join("; ")));
            }
        }
        Ok(ground)
    }

    /// The engine called `name`, if this binary has it.
    pub fn engine(&self, name: &str) -> Option<ColdEngine> {
        self.engines.iter().find(|engine| engine.name == name).copied()
    }

    /// The measure of the disk alone: fio if it is installed, or else the store `disk`.
    pub fn disk(&self) -> ColdEngine {
        let disk = self.engine("fio 16K").or_else(|| self.engine("disk 16K"));
        disk.expect("the disk alone is always among the engines")
    }

    /// Whether stores of `scheme` know the option `name`.
    pub fn has_option(&self, scheme: &str, name: &str) -> bool {
        let scheme = self.schemes.iter().find(|known| known.name == scheme);
        scheme.is_some_and(|scheme| scheme.options.iter().any(|(known, _)| *known == name))
    }

    /// Adds a line to the head of the report, unless it is there already.
    pub fn note(&mut self, text: &str) {
        let line = format!("* {text}\n");
        if !self.head.contains(&line) {
            self.tale.tell(text);
            self.head.push_str(&line);
        }
    }

    /// The target of `engine` with the further options `more` (`flights=8`), which override its own.
    fn target(&self, engine: &ColdEngine, more: &str) -> String {
        let directory = self.place.join(engine.of.unwrap_or(engine.name));
        let mut options: Vec<&str> = Vec::new();
        for option in engine.options.split('&').chain(more.split('&')).filter(|option| !option.is_empty()) {
            let name = option.split('=').next();
            options.retain(|known| known.split('=').next() != name);
            options.push(option);
        }
        format!("{}:{}?{}", engine.scheme, directory.display(), options.join("&"))
    }

    /// Starts a process that opens the database of `engine` with the further options `more`, under the memory limit
    /// if `limited`. Each part and number of threads gets a new process, so that memory of earlier measurements
    /// does not count.
    pub fn start(&mut self, engine: &ColdEngine, more: &str, limited: bool) -> Result<Peer, String> {
        let limit = match limited {
            false => None,
            true => {
                let number = self.engines.iter().position(|known| known.name == engine.name).unwrap_or_default();
                let made = MemoryLimit::new(&format!("larch-bench-{}-{number}", std::process::id()), LIMIT_BYTES);
                made.map_err(|why| {
                    let name = engine.name;
                    self.note(&format!("memory of {name} was NOT limited, so the system's cache helped: {why}"));
                })
                .ok()
            }
        };
        let mut peer = Peer::start(engine.name, &self.target(engine, more), limit)?;
        peer.obey(&Order::Open { anew: false })?;
        Ok(peer)
    }

    /// Starts a process for each of `engines` (engine, further options). On failure, records the error in `table`
    /// and returns no process. First drops the databases from the page cache: pages that an earlier process brought
    /// in would not count against the limit.
    pub fn start_all(&mut self, engines: &[(ColdEngine, String)], limited: bool, table: &mut Table) -> Vec<Peer> {
        let mut peers = Vec::new();
        if let Err(error) = disk::forget(self.place.path()) {
            let why = format!("{}: {error}", self.place.path().display());
            failed("forget", why, &mut table.failures, &self.tale);
            return peers;
        }
        for (engine, more) in engines {
            match self.start(engine, more, limited) {
                Ok(peer) => peers.push(peer),
                Err(why) => {
                    failed("start", why, &mut table.failures, &self.tale);
                    return Vec::new();
                }
            }
        }
        peers
    }

    /// Bytes of all rows.
    pub fn row_bytes(&self) -> u64 {
        self.scale.records * ROW_BYTES
    }
}

/// The schemes of the engines that a binary may be built with.
fn built() -> Vec<&'static str> {
    let mut schemes: Vec<_> = ENGINES.iter().map(|engine| engine.scheme).collect();
    schemes.dedup();
    schemes.retain(|scheme| !["disk", "fio"].contains(scheme));
    schemes
}

fn make(engine: &ColdEngine, target: &str, records: u64) -> Result<Sample, String> {
    let mut peer = Peer::start(engine.name, target, None)?;
    peer.obey(&Order::Open { anew: true })?;
    let made = peer.obey(&Order::Fill { how: Fill::Sorted, records, limit_millis: 0 })?;
    peer.obey(&Order::Close)?;
    Ok(made)
}
