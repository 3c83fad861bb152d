//! All figures that experiments quote from documents of others. A figure has its document and its place there, and is
//! written as there. Experiments take the figures from here, so that none is typed twice; derived figures, such as
//! medians and ratios, are computed from them.
//!
//! This module knows no experiment. The documents themselves are not in the tree. A test finds each figure in them:
//!
//! ```console
//! $ LARCH_DOCUMENTS=DIRECTORY cargo test -p larch-bench-experiments --lib quoted -- --ignored
//! ```

#[cfg(test)]
mod tests;

use kit::median;

/// A document from which figures are quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// YDB's issue on a B-tree index of its files.
    YdbIndex,
    /// OrientDB's proposal 9.
    OrientDb,
    /// A talk of YDB's authors on benchmarks.
    YdbTalk,
    /// The merge with which ScyllaDB's readers began to share index pages.
    Scylla,
    /// The page of ybio, a benchmark of row access.
    Ybio,
}

impl Document {
    /// The documents.
    #[cfg(test)]
    pub const ALL: [Self; 5] = [Self::YdbIndex, Self::OrientDb, Self::YdbTalk, Self::Scylla, Self::Ybio];

    /// Words by which the document is recognized: no other has them.
    #[cfg(test)]
    pub fn title(self) -> &'static str {
        match self {
            Self::YdbIndex => "Readonly B-Tree SST index",
            Self::OrientDb => "[OEP 9] Use 16k pages for next versions of OrientDB by default",
            Self::YdbTalk => "YDB vs. TPC-C: the Good, the Bad, and the Ugly behind High-Performance Benchmarking",
            Self::Scylla => "sstables: Share partition index pages between readers",
            Self::Ybio => "ybio is a row-access micro-benchmarking for PostgreSQL or YugabyteDB",
        }
    }
}

/// A quoted figure.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    /// The figure as the document writes it.
    pub written: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Where it is quoted from.
    #[cfg_attr(not(test), expect(dead_code, reason = "says where the figure is from; a test looks it up there"))]
    pub document: Document,
    /// Its place in the document: texts that follow one another there, the last of them just before the figure. Empty
    /// texts are left out.
    #[cfg_attr(not(test), expect(dead_code, reason = "says where the figure is from; a test looks it up there"))]
    pub place: [&'static str; 4],
}

impl Quote {
    const fn new(document: Document, place: [&'static str; 4], written: &'static str, unit: &'static str) -> Self {
        Self { written, unit, document, place }
    }

    /// The figure.
    pub fn value(&self) -> f64 {
        self.written.replace([' ', ','], "").parse().expect("what is quoted as a figure is a number")
    }

    /// The figure with its unit.
    pub fn text(&self) -> String {
        format!("{} {}", self.written, self.unit)
    }
}

/// Lines that are quoted as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// The lines, with spaces that may differ from those in the document.
    pub text: &'static str,
    /// Where they are quoted from.
    #[cfg_attr(not(test), expect(dead_code, reason = "says where the lines are from; a test looks them up there"))]
    pub document: Document,
    /// The words before them.
    #[cfg_attr(not(test), expect(dead_code, reason = "says where the lines are from; a test looks them up there"))]
    pub place: &'static str,
}

impl Passage {
    /// The median over the lines of a column of the table, without units.
    pub fn median_of(&self, column: &str) -> f64 {
        let mut lines = self.text.lines().map(str::split_whitespace);
        let at = lines.next().and_then(|mut head| head.position(|name| name == column)).expect("the column is there");
        let cells = lines.map(|mut cells| cells.nth(at).expect("each line has all columns").trim_end_matches("ms"));
        median(&cells.map(|cell| cell.parse().expect("a cell is a number")).collect::<Vec<_>>())
    }
}

/// The figures of one of YDB's two indexes in a run of TPC-C.
#[derive(Clone, Copy, Debug)]
pub struct YdbTpccSide {
    pub tpmc: Quote,
    /// New orders that failed.
    pub failed: Quote,
    /// Times of the load, the compaction after it, and the build of a secondary index.
    pub load: Quote,
    pub compaction: Quote,
    pub index: Quote,
}

/// A run of TPC-C on YDB with both indexes.
#[derive(Clone, Copy, Debug)]
pub struct YdbTpcc {
    /// The size of the cache.
    pub cache: Quote,
    pub warehouses: Quote,
    pub flat: YdbTpccSide,
    pub tree: YdbTpccSide,
}

/// The figures of one side: tpmC, failed new orders in percent, and the seconds of load, compaction and index.
const fn tpcc_side(run: &'static str, side: &'static str, written: [&'static str; 5]) -> YdbTpccSide {
    const fn quote(place: [&'static str; 4], written: &'static str, unit: &'static str) -> Quote {
        Quote::new(Document::YdbIndex, place, written, unit)
    }
    let [tpmc, failed, load, compaction, index] = written;
    YdbTpccSide {
        tpmc: quote([run, side, "", "tpmC:"], tpmc, "1/min"),
        failed: quote([run, side, "NewOrder: OK:", "("], failed, "%"),
        load: quote([run, side, "", "Loading data done in"], load, "s"),
        compaction: quote([run, side, "", "Compaction done in"], compaction, "s"),
        index: quote([run, side, "", "Built index in"], index, "s"),
    }
}

/// The cache and the two sides of `run`, whose heading has the size of the cache after `before`.
const fn tpcc(
    run: &'static str,
    (before, cache): ([&'static str; 2], &'static str),
    flat: [&'static str; 5],
    tree: [&'static str; 5],
) -> YdbTpcc {
    YdbTpcc {
        cache: Quote::new(Document::YdbIndex, [before[0], "", "", before[1]], cache, "GB"),
        warehouses: Quote::new(Document::YdbIndex, [run, FLAT, "", "Warehouses:"], "12000", "warehouses"),
        flat: tpcc_side(run, FLAT, flat),
        tree: tpcc_side(run, TREE, tree),
    }
}

const FLAT: &str = "Flat index";
const TREE: &str = "B-Tree index";

/// The headings of the runs of TPC-C.
const RUNS: [&str; 3] =
    ["TPC-C 02-05-2024, 12K, 54GB cache", "TPC-C 02-05-2024, 12K, 18GB cache", "TPC-C 03-05-2024, 12K, 2GB cache"];

/// TPC-C on YDB with less and less cache. The first two runs are of the same day, so the heading of the second is the
/// one after that of the first.
pub const YDB_TPCC: [YdbTpcc; 3] = [
    tpcc(
        RUNS[0],
        (["", "TPC-C 02-05-2024, 12K,"], "54"),
        ["151485", "0.01", "1478", "443", "566"],
        ["151435", "0.0", "1431", "455", "534"],
    ),
    tpcc(
        RUNS[1],
        ([RUNS[0], "TPC-C 02-05-2024, 12K,"], "18"),
        ["115815", "0.75", "1501", "450", "555"],
        ["117808", "0.64", "1492", "451", "491"],
    ),
    tpcc(
        RUNS[2],
        (["", "TPC-C 03-05-2024, 12K,"], "2"),
        ["72032", "22.9", "1526", "434", "546"],
        ["75677", "20.14", "1546", "452", "545"],
    ),
];

/// The figures of one of YDB's two indexes under a workload of YCSB.
#[derive(Clone, Copy, Debug)]
pub struct YdbYcsbSide {
    pub rate: Quote,
    /// The 99th percentile.
    pub late: Quote,
}

/// A workload of YCSB on YDB, each time with the flat index and with the tree.
#[derive(Clone, Copy, Debug)]
pub struct YdbYcsb {
    pub workload: &'static str,
    /// With the usual cache.
    pub march: [YdbYcsbSide; 2],
    /// With a cache of 2 GB.
    pub may: [YdbYcsbSide; 2],
}

/// The figures of a run: the rate and the 99th percentile with the flat index, and the same with the tree.
const fn ycsb_run(run: &'static str, workload: &'static str, written: [&'static str; 4]) -> [YdbYcsbSide; 2] {
    const fn side(place: [&'static str; 3], rate: &'static str, late: &'static str) -> YdbYcsbSide {
        let [run, side, workload] = place;
        YdbYcsbSide {
            rate: Quote::new(Document::YdbIndex, [run, side, "", workload], rate, "K operations/s"),
            late: Quote::new(Document::YdbIndex, [run, side, workload, "latency 99%"], late, "ms"),
        }
    }
    let [flat, flat_late, tree, tree_late] = written;
    [side([run, FLAT, workload], flat, flat_late), side([run, TREE, workload], tree, tree_late)]
}

const fn ycsb(
    workload: &'static str,
    label: &'static str,
    march: [&'static str; 4],
    may: [&'static str; 4],
) -> YdbYcsb {
    YdbYcsb { workload, march: ycsb_run("YCSB 26-03-24", label, march), may: ycsb_run("YCSB 04-05-2024", label, may) }
}

/// YCSB on YDB, in the order of the document.
pub const YDB_YCSB: [YdbYcsb; 6] = [
    ycsb("a", "workload a:", ["354.8", "28.479", "345.4", "133.119"], ["369.1", "158.335", "375.7", "55.167"]),
    ycsb("b", "workload b:", ["494.7", "22.751", "501.3", "18.655"], ["503.5", "18.815", "500.3", "17.599"]),
    ycsb("c", "workload c:", ["532.5", "14.367", "548.6", "11.159"], ["527.8", "11.335", "524.9", "11.559"]),
    ycsb("f", "workload f:", ["260.9", "23.839", "261.8", "19.631"], ["276", "32.607", "275.4", "25.727"]),
    ycsb("d", "workload d:", ["66.8", "577.023", "61.9", "832.511"], ["63.6", "600.063", "62.5", "591.359"]),
    ycsb("e", "workload e:", ["63.6", "474.367", "65.3", "99.007"], ["65", "244.735", "62.9", "85.119"]),
];

/// The longest of these runs, which ended by time.
pub const YDB_YCSB_TIME: Quote =
    Quote::new(Document::YdbIndex, ["YCSB 26-03-24", TREE, "workload a:", "448 errors,"], "1201089", "ms");

/// The operations of the runs that ended by number.
pub const YDB_YCSB_OPERATIONS: Quote =
    Quote::new(Document::YdbIndex, ["YCSB 26-03-24", TREE, "workload b:", "ms:"], "600000.1", "K operations");

const fn of_talk(place: [&'static str; 2], written: &'static str, unit: &'static str) -> Quote {
    let [slide, before] = place;
    Quote::new(Document::YdbTalk, [slide, "", "", before], written, unit)
}

const RAM_SLIDE: &str = "Benchmark consumes too much RAM";
const CHANGES_SLIDE: &str = "Minimum changes — maximum benefit";

/// Memory for a warehouse in BenchBase, whose terminals are threads.
pub const BENCHBASE_WAREHOUSE: Quote = of_talk([RAM_SLIDE, "**"], "40", "MB");
/// Warehouses of the least setup.
pub const LEAST_WAREHOUSES: Quote = of_talk([RAM_SLIDE, "Single warehouse **"], "15 000", "warehouses");
/// Memory for that many in BenchBase.
pub const BENCHBASE_MEMORY: Quote = of_talk([RAM_SLIDE, "Warehouses **"], "600", "GB");
/// Threads of that many in BenchBase.
pub const BENCHBASE_THREADS: Quote =
    of_talk(["Initial benchmark requirements to run", "warehouses **"], "150", "K threads");
/// Memory for a warehouse in the authors' own client, whose terminals are virtual threads.
pub const YDB_WAREHOUSE: Quote = of_talk([CHANGES_SLIDE, "Aggregate transaction history -"], "6", "MB");
/// Warehouses for each core of their client.
pub const YDB_WAREHOUSES_A_CORE: Quote = of_talk([CHANGES_SLIDE, "CPU core per"], "1000", "warehouses");
/// Memory of their client with the least setup.
pub const YDB_MEMORY: Quote = of_talk([CHANGES_SLIDE, "warehouses —"], "90", "GB");
/// Cores of their client with the least setup.
pub const YDB_CORES: Quote = of_talk([CHANGES_SLIDE, "GB RAM,"], "15", "cores");

/// OrientDB's figures for one kind of requests with one size of pages.
#[derive(Clone, Copy, Debug)]
pub struct OrientDbSide {
    /// Times in microseconds.
    pub average: Quote,
    pub least: Quote,
    pub percentile_95: Quote,
    pub percentile_99: Quote,
    /// Requests a second. `None` for the load, for which the proposal has only the total time.
    pub rate: Option<Quote>,
}

impl OrientDbSide {
    /// The figures in the order of the fields.
    pub fn all(&self) -> [Option<Quote>; 5] {
        [Some(self.average), Some(self.least), Some(self.percentile_95), Some(self.percentile_99), self.rate]
    }
}

/// OrientDB's figures for one kind of requests.
#[derive(Clone, Copy, Debug)]
pub struct OrientDb {
    /// With pages of 64 KiB.
    pub large: OrientDbSide,
    /// With pages of 16 KiB.
    pub small: OrientDbSide,
}

/// The texts before the four times of each kind.
const INSERTS: [&str; 4] = [
    "[INSERT], AverageLatency(us),",
    "[INSERT], MinLatency(us),",
    "[INSERT], 95thPercentileLatency(us),",
    "[INSERT], 99thPercentileLatency(us),",
];
const READS: [&str; 4] = [
    "[READ], AverageLatency(us),",
    "[READ], MinLatency(us),",
    "[READ], 95thPercentileLatency(us),",
    "[READ], 99thPercentileLatency(us),",
];
const UPDATES: [&str; 4] = [
    "[UPDATE], AverageLatency(us),",
    "[UPDATE], MinLatency(us),",
    "[UPDATE], 95thPercentileLatency(us),",
    "[UPDATE], 99thPercentileLatency(us),",
];

const LARGE: &str = "64k pages";
const SMALL: &str = "16k pages";
const LOAD: &str = "Load of data";
const HALF: &str = "Mixed load 50% of writes, 50% of reads";
const FEW: &str = "Read mostly load 5% writes, 95% reads";
const ONLY_READS: &str = "Read only workload";

const fn of_orient(place: [&'static str; 4], written: &'static str, unit: &'static str) -> Quote {
    Quote::new(Document::OrientDb, place, written, unit)
}

const fn orient_side(place: [&'static str; 2], times: [&'static str; 4], written: [&'static str; 5]) -> OrientDbSide {
    let ([load, pages], [average, least, percentile_95, percentile_99, rate]) = (place, written);
    OrientDbSide {
        average: of_orient([load, pages, "", times[0]], average, "us"),
        least: of_orient([load, pages, "", times[1]], least, "us"),
        percentile_95: of_orient([load, pages, "", times[2]], percentile_95, "us"),
        percentile_99: of_orient([load, pages, "", times[3]], percentile_99, "us"),
        rate: match rate.is_empty() {
            true => None,
            false => Some(of_orient([load, pages, times[3], "Thoroughput ="], rate, "1/s")),
        },
    }
}

const fn orient(
    load: &'static str,
    times: [&'static str; 4],
    large: [&'static str; 5],
    small: [&'static str; 5],
) -> OrientDb {
    OrientDb { large: orient_side([load, LARGE], times, large), small: orient_side([load, SMALL], times, small) }
}

/// Inserts of the load.
pub const ORIENTDB_INSERTS: OrientDb = orient(
    LOAD,
    INSERTS,
    ["2659.181693165", "36.0", "1935.0", "3647.0", ""],
    ["1649.60618966", "35.0", "1770.0", "2481.0", ""],
);
/// Reads and updates, half of each.
pub const ORIENTDB_HALF_READS: OrientDb = orient(
    HALF,
    READS,
    ["2289.592112263472", "17.0", "1616.0", "18895.0", "3494"],
    ["1199.684215890254", "17.0", "787.0", "1353.0", "6668"],
);
pub const ORIENTDB_HALF_UPDATES: OrientDb = orient(
    HALF,
    UPDATES,
    ["7351.444064681804", "36.0", "3161.0", "72191.0", "1 088"],
    ["5039.77029837364", "32.0", "1308.0", "2781.0", "1 587"],
);
/// Reads and updates, one update in twenty.
pub const ORIENTDB_FEW_READS: OrientDb = orient(
    FEW,
    READS,
    ["743.0695396303125", "16.0", "1407.0", "3575.0", "10 767"],
    ["559.9084873968899", "18.0", "668.0", "1096.0", "14 288"],
);
pub const ORIENTDB_FEW_UPDATES: OrientDb = orient(
    FEW,
    UPDATES,
    ["2338.448307545592", "41.0", "2319.0", "7059.0", "3 421"],
    ["2492.1606831810336", "44.0", "1049.0", "2615.0", "3 210"],
);
/// Reads alone.
pub const ORIENTDB_READS: OrientDb = orient(
    ONLY_READS,
    READS,
    ["483.73006588", "16.0", "1252.0", "1825.0", "16 538"],
    ["263.79829212", "16.0", "583.0", "823.0", "30 327"],
);

/// Hours and minutes of the load with pages of 64 KiB, and with pages of 16 KiB.
pub const ORIENTDB_LOADS: [[Quote; 2]; 2] = [orient_load(LARGE, ["18", "32"]), orient_load(SMALL, ["11", "31"])];

const fn orient_load(pages: &'static str, written: [&'static str; 2]) -> [Quote; 2] {
    let [hours, minutes] = written;
    [
        of_orient([LOAD, pages, "", "Total time:"], hours, "h"),
        of_orient([LOAD, pages, "Total time:", "hrs"], minutes, "min"),
    ]
}

/// How many times faster the load is with pages of 16 KiB.
pub const ORIENTDB_LOAD_GAIN: Quote = of_orient([LOAD, SMALL, "", "16k pages"], "1.61", "times");

const fn of_scylla(before: &'static str, written: &'static str, unit: &'static str) -> Quote {
    Quote::new(Document::Scylla, ["Below are the results of an experiment", "", "", before], written, unit)
}

/// The readers of ScyllaDB's experiment, and the partitions that they read.
pub const SCYLLA_READERS: Quote = of_scylla("-concurrency", "100", "readers");
pub const SCYLLA_PARTITIONS: Quote = of_scylla("--partition-count=", "10", "partitions");
/// Reads of the disk for each read, before and after.
pub const SCYLLA_READS: [Quote; 2] =
    [of_scylla("Before, we needed", "2", "reads"), of_scylla("now we need", "1", "read")];
/// The gain in rows a second.
pub const SCYLLA_GAIN: Quote = of_scylla("The throughput is ~", "70", "%");

/// The commands of ScyllaDB's experiment.
pub const SCYLLA_COMMANDS: [Passage; 2] = [
    Passage {
        text: "scylla-bench -workload uniform -mode read --partition-count=10 -clustering-row-count=1 -concurrency 100",
        document: Document::Scylla,
        place: "Load driver command line:",
    },
    Passage {
        text: "scylla --developer-mode=1 -c1 -m1G --enable-cache=0",
        document: Document::Scylla,
        place: "Scylla command line:",
    },
];

/// The tables of ScyllaDB's experiment, before and after.
pub const SCYLLA_TABLES: [Passage; 2] = [
    Passage {
        text: "\
 time   ops/s  rows/s errors max    99.9th 99th   95th   90th   median mean
   1s    4706    4706      0 35ms   30ms   27ms   25ms   24ms   21ms   21ms
   2s    4646    4646      0 42ms   31ms   31ms   27ms   25ms   21ms   22ms
 3.1s    4670    4670      0 40ms   27ms   26ms   25ms   25ms   21ms   21ms
 4.1s    4581    4581      0 39ms   33ms   33ms   27ms   26ms   21ms   22ms
 5.1s    4345    4345      0 40ms   37ms   35ms   32ms   31ms   21ms   23ms
 6.1s    4328    4328      0 49ms   40ms   34ms   32ms   31ms   22ms   23ms
 7.1s    4198    4198      0 45ms   36ms   35ms   31ms   30ms   22ms   24ms
 8.2s    3913    3913      0 51ms   50ms   50ms   39ms   35ms   24ms   26ms
 9.2s    4524    4524      0 34ms   31ms   30ms   28ms   27ms   21ms   22ms
",
        document: Document::Scylla,
        place: "Before:",
    },
    Passage {
        text: "\
 time   ops/s  rows/s errors max    99.9th 99th   95th   90th   median mean
   1s    7913    7913      0 25ms   25ms   20ms   15ms   14ms   12ms   13ms
   2s    7913    7913      0 18ms   18ms   18ms   16ms   14ms   12ms   13ms
   3s    8125    8125      0 20ms   20ms   17ms   15ms   14ms   12ms   12ms
   4s    5609    5609      0 41ms   35ms   29ms   28ms   27ms   13ms   18ms
 5.1s    8020    8020      0 18ms   17ms   17ms   15ms   14ms   12ms   13ms
 6.1s    7102    7102      0 27ms   27ms   24ms   19ms   18ms   13ms   14ms
 7.1s    5780    5780      0 26ms   26ms   26ms   23ms   22ms   17ms   18ms
 8.1s    6530    6530      0 37ms   34ms   26ms   22ms   20ms   15ms   15ms
 9.1s    7937    7937      0 19ms   19ms   17ms   17ms   16ms   12ms   13ms
",
        document: Document::Scylla,
        place: "After:",
    },
];

/// A run of ybio.
#[derive(Clone, Copy, Debug)]
pub struct YbioRun {
    /// Rows of a batch.
    pub batch: Quote,
    /// Rows a second.
    pub rate: Quote,
    /// The share of rows that were updated.
    pub updated: Quote,
}

/// A run, by its duration and its number of rows, which are columns to the left of its figures.
const fn ybio(run: [&'static str; 2], written: [&'static str; 3]) -> YbioRun {
    const fn quote(place: [&'static str; 3], written: &'static str, unit: &'static str) -> Quote {
        let [run, then, before] = place;
        Quote::new(Document::Ybio, ["read results", run, then, before], written, unit)
    }
    let ([duration, rows], [batch, rate, updated]) = (run, written);
    YbioRun {
        batch: quote([duration, "| f |", "1000000 |"], batch, "rows"),
        rate: quote(["", "", duration], rate, "rows/s"),
        updated: quote([duration, "", rows], updated, "%"),
    }
}

/// The runs of ybio on a YugabyteDB.
pub const YBIO: [YbioRun; 9] = [
    ybio(["00:10:00.005778 |", "337613 |"], ["1", "563", "10"]),
    ybio(["00:10:00.006399 |", "2976935 |"], ["10", "4962", "10"]),
    ybio(["00:10:00.018242 |", "5695852 |"], ["25", "9493", "10"]),
    ybio(["00:10:00.008916 |", "7860486 |"], ["50", "13101", "10"]),
    ybio(["00:10:00.010691 |", "8579921 |"], ["75", "14300", "10"]),
    ybio(["00:10:03.313616 |", "18233325 |"], ["250000", "30222", "5"]),
    ybio(["00:10:01.014065 |", "20500000 |"], ["500000", "34109", "5"]),
    ybio(["00:10:08.574929 |", "20995158 |"], ["750000", "34499", "5"]),
    ybio(["00:10:17.721976 |", "19799980 |"], ["1000000", "32053", "5"]),
];

/// What the page of an experiment says of a document.
#[derive(Clone, Copy, Debug)]
pub struct Prose {
    pub text: &'static str,
    /// The figures in the text.
    #[cfg_attr(not(test), expect(dead_code, reason = "says where the figures are from; a test compares them"))]
    pub quotes: &'static [Quote],
}

/// On the client of TPC-C.
pub const TALK: Prose = Prose {
    text: "The usual client of TPC-C has a thread for each terminal, so that 15,000 warehouses take 150,000 threads \
           and 600 GB of memory. The authors of YDB replaced them by virtual threads, and then needed 90 GB and 15 \
           cores.",
    quotes: &[LEAST_WAREHOUSES, BENCHBASE_THREADS, BENCHBASE_MEMORY, YDB_MEMORY, YDB_CORES],
};

/// On YDB's two indexes.
pub const YDB_INDEX: Prose = Prose {
    text: "YDB replaced one flat index for each file by a B-tree, and ran TPC-C and YCSB on a cluster with both, with \
           caches of 54, 18 and 2 GB.",
    quotes: &[YDB_TPCC[0].cache, YDB_TPCC[1].cache, YDB_TPCC[2].cache],
};

/// On OrientDB's proposal.
pub const ORIENTDB: Prose = Prose {
    text: "Scaled: the proposal loaded a database for 11 to 18 hours on a machine that it does not describe.",
    quotes: &[ORIENTDB_LOADS[1][0], ORIENTDB_LOADS[0][0]],
};

/// On ScyllaDB's experiment.
pub const SCYLLA: Prose = Prose {
    text: "In 2021, readers of ScyllaDB began to share the pages of a partition index. 100 readers read 10 \
           partitions, with the cache of rows off. Before, a read took 2 reads of the disk; after, it took 1, and \
           about 70 % more reads were made.",
    quotes: &[SCYLLA_READERS, SCYLLA_PARTITIONS, SCYLLA_READS[0], SCYLLA_READS[1], SCYLLA_GAIN],
};
