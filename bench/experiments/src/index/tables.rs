//! The tables, charts and goals of the experiment, beside the figures of YDB's document.

use super::data::Loaded;
use super::instructions::Counted;
use super::wide::KEY_BYTES;
use super::{ALL_WRITTEN, ARMS, Arm, CACHES, Cache, Cell, DEPTHS, Extent, WORKLOADS, Written, cache_name};
use crate::figures::{PAIRED, kib, mib, middle, ratio, shown, shown_middle, spread};
use crate::ground::Ground;
use crate::made::Shape;
use crate::outcome::{Goal, chart, grid, table};
use crate::quoted::{self, YdbYcsb};
use crate::ycsb_run::YcsbRun;
use harness::directory::bytes_text;
use page::{Axis, Block, figure};

/// Access to what was measured.
pub struct Seen<'a> {
    pub ground: &'a Ground,
    pub extent: &'a Extent,
}

fn read_each(run: &YcsbRun) -> f64 {
    run.each(run.read_bytes)
}

fn kib_each(run: &YcsbRun) -> f64 {
    kib(read_each(run))
}

impl Seen<'_> {
    fn reads(&self, cache: Cache, depth: usize, arm: Arm) -> Vec<YcsbRun> {
        self.ground.all(self.extent.repeats, |repeat| Cell::Reads(repeat, cache, depth, arm))
    }

    fn ycsb(&self, workload: &'static str, cache: Cache, arm: Arm) -> Vec<YcsbRun> {
        self.ground.all(self.extent.mixed_repeats, |repeat| Cell::Ycsb(repeat, workload, cache, arm))
    }

    fn shape(&self, written: Written) -> Shape {
        self.ground.told(written.name()).unwrap_or_default()
    }

    fn counted(&self, arm: Arm) -> Option<Counted> {
        self.ground.known(Cell::Instructions(arm))
    }

    fn instructions(&self, arm: Arm) -> Option<f64> {
        self.counted(arm)?.each
    }

    pub fn blocks(&self) -> Vec<Block> {
        vec![
            Block::Heading("How it is scaled".to_owned()),
            self.scale(),
            Block::Heading("Reads of random rows".to_owned()),
            self.lines("Gets a second, 32 under way", "gets a second", DEPTHS[1], YcsbRun::per_second),
            self.lines("KiB read for a get, one under way", "KiB", DEPTHS[0], kib_each),
            self.read_table(),
            Block::Heading("YCSB".to_owned()),
            self.ycsb_table(),
            self.beside(),
            Block::Heading("Load, compaction, index".to_owned()),
            self.loads(),
            Block::Heading("Memory and instructions".to_owned()),
            self.memory(),
            self.instruction_table(),
            Block::Text(self.how_counted()),
        ]
    }

    fn scale(&self) -> Block {
        let flat_bytes = self.shape(Written::Both).flat_bytes;
        let caches = CACHES.map(|(times, divisor)| {
            let bytes = flat_bytes * times / divisor;
            format!("{} = {} KiB", cache_name((times, divisor)), figure(kib(bytes as f64)))
        });
        let caption = format!(
            "Keys of {KEY_BYTES} bytes, of which {} neighbours share the first 184; values of ten fields of 100 bytes; row pages of {}, nodes of \
             {}. Caches, by the bytes of all flat lists: {}. Reads are direct. Log buffered: written with every commit, not synced",
            self.extent.group_rows,
            bytes_text(self.extent.page_bytes),
            bytes_text(self.extent.node_bytes),
            caches.join(", ")
        );
        table(
            caption,
            ["both indexes written", "tree alone"].into_iter().zip(ALL_WRITTEN.map(|written| self.shape(written))),
            &[
                ("database", &|(name, _)| (*name).to_owned()),
                ("rows", &|(_, shape)| figure(shape.rows as f64)),
                ("MiB", &|(_, shape)| figure(mib(shape.file_bytes as f64))),
                ("files", &|(_, shape)| shape.files.to_string()),
                ("MiB of the least file", &|(_, shape)| figure(mib(shape.least_file_bytes as f64))),
                ("data pages", &|(_, shape)| figure(shape.data_pages as f64)),
                ("KiB of flat lists", &|(_, shape)| figure(kib(shape.flat_bytes as f64))),
                ("KiB of trees", &|(_, shape)| figure(kib(shape.btree_bytes as f64))),
                ("nodes from root to row page", &|(_, shape)| shape.height.to_string()),
                ("s to write in order of keys", &|(_, shape)| figure(shape.nanos as f64 / 1e9)),
            ],
        )
    }

    fn lines(&self, title: &str, unit: &str, depth: usize, what: fn(&YcsbRun) -> f64) -> Block {
        let points = |arm: Arm| {
            let share = |cache: Cache| cache.0 as f64 / cache.1 as f64;
            let point = |cache: &Cache| Some((share(*cache), middle(&self.reads(*cache, depth, arm), what)?));
            CACHES.iter().rev().filter_map(point).collect()
        };
        let axes = (Axis::logarithmic("bytes of the cache for those of all flat lists"), Axis::logarithmic(unit));
        chart(title, axes, ARMS.map(|arm| (arm.name(), points(arm))))
    }

    fn read_table(&self) -> Block {
        let all = CACHES.into_iter().flat_map(|cache| DEPTHS.map(|depth| (cache, depth)));
        let rows = all.flat_map(|(cache, depth)| {
            let flat = self.reads(cache, depth, Arm::Flat);
            ARMS.map(|arm| {
                let name = format!("cache {}, {depth} under way, {}", cache_name(cache), arm.name());
                (name, self.reads(cache, depth, arm), flat.clone())
            })
        });
        table(
            format!(
                "Gets of rows drawn alike, each checked; median of {} repeats, in turns; {PAIRED}",
                self.extent.repeats
            ),
            rows,
            &[
                ("", &|(name, ..)| name.clone()),
                ("gets/s (least-most)", &|(_, runs, _)| spread(runs, YcsbRun::per_second)),
                ("for flat", &|(_, runs, flat)| shown(ratio(runs, flat, YcsbRun::per_second))),
                ("99 %, us", &|(_, runs, _)| shown_middle(runs, YcsbRun::percentile_99)),
                ("pages read a get", &|(_, runs, _)| shown_middle(runs, |run| run.each(run.page_reads))),
                ("index pages a get", &|(_, runs, _)| shown_middle(runs, |run| run.each(run.index_page_reads))),
                ("KiB read a get", &|(_, runs, _)| shown_middle(runs, kib_each)),
                ("bytes of the disk for those counted", &|(_, runs, _)| shown_middle(runs, |run| run.disk_share)),
            ],
        )
    }

    fn ycsb_table(&self) -> Block {
        let all = WORKLOADS.into_iter().flat_map(|workload| CACHES.map(|cache| (workload, cache)));
        let rows = all.flat_map(|(workload, cache)| {
            let flat = self.ycsb(workload, cache, Arm::Flat);
            ARMS.map(|arm| {
                let name = format!("{workload}, cache {}, {}", cache_name(cache), arm.name());
                (name, self.ycsb(workload, cache, arm), flat.clone())
            })
        });
        let until = self.extent.until;
        let caption = format!(
            "YCSB A to F, 32 requests under way on one thread; each for {} s or {} operations, whichever comes first, after {} s of warm-up, on \
             a copy that begins with the same files; rows that are read alone are checked; median of {}; {PAIRED}",
            until.time.as_secs_f64(),
            figure(until.operations as f64),
            until.warmup.as_secs_f64(),
            self.extent.mixed_repeats
        );
        table(
            caption,
            rows,
            &[
                ("workload", &|(name, ..)| name.clone()),
                ("operations/s", &|(_, runs, _)| shown_middle(runs, YcsbRun::per_second)),
                ("for flat", &|(_, runs, flat)| shown(ratio(runs, flat, YcsbRun::per_second))),
                ("99 % of the commonest, us", &|(_, runs, _)| shown_middle(runs, YcsbRun::percentile_99)),
                ("pages read an operation", &|(_, runs, _)| shown_middle(runs, |run| run.each(run.page_reads))),
                ("KiB read an operation", &|(_, runs, _)| shown_middle(runs, kib_each)),
                ("KiB written an operation", &|(_, runs, _)| {
                    shown_middle(runs, |run| kib(run.each(run.written_bytes)))
                }),
                ("ended by time", &|(_, runs, _)| {
                    format!("{} of {}", runs.iter().filter(|run| run.ended_by == "time").count(), runs.len())
                }),
            ],
        )
    }

    fn beside(&self) -> Block {
        let row = |quoted: &YdbYcsb| {
            let workload = quoted.workload;
            let mut cells = vec![workload.to_owned()];
            for [flat, tree] in [quoted.march, quoted.may] {
                cells.push(format!("{} / {}", flat.rate.written, tree.rate.written));
                cells.push(figure(tree.rate.value() / flat.rate.value()));
                cells.push(format!("{:.1} / {:.1}", flat.late.value(), tree.late.value()));
            }
            for cache in [CACHES[0], CACHES[3], CACHES[4]] {
                let [flat, tree] = [Arm::Flat, Arm::Tree].map(|arm| self.ycsb(workload, cache, arm));
                let thousands = |runs: &[YcsbRun]| shown_middle(runs, |run| run.per_second() / 1e3);
                let millis = |runs: &[YcsbRun]| shown_middle(runs, |run| Some(run.percentile_99()? / 1e3));
                cells.push(format!("{} / {}", thousands(&flat), thousands(&tree)));
                cells.push(shown(ratio(&tree, &flat, YcsbRun::per_second)));
                cells.push(format!("{} / {}", millis(&flat), millis(&tree)));
            }
            cells
        };
        let mut columns = vec!["workload".to_owned()];
        let may = format!("YDB, {} cache", quoted::YDB_TPCC[2].cache.text());
        for place in ["YDB, March", &*may, "Larch, cache 4x", "Larch, cache 1/4", "Larch, cache 1/16"] {
            columns.extend([format!("{place}: K/s, flat / tree"), "tree for flat".to_owned(), "99 %, ms".to_owned()]);
        }
        let caption = format!(
            "The document's YCSB (26 March and 4 May 2024, {:.0} minutes or {:.0} M operations each, a cluster) beside ours; of ours {PAIRED}",
            quoted::YDB_YCSB_TIME.value() / 60e3,
            quoted::YDB_YCSB_OPERATIONS.value() / 1e3,
        );
        grid(caption, columns, quoted::YDB_YCSB.iter().map(row).collect())
    }

    fn loads(&self) -> Block {
        let mut rows = Vec::new();
        for written in ALL_WRITTEN {
            let loads: Vec<Loaded> = self.ground.all(self.extent.repeats, |repeat| Cell::Load(repeat, written));
            let seconds = |what: fn(&Loaded) -> u64| shown_middle(&loads, |load| what(load) as f64 / 1e9);
            rows.push(vec![
                format!("Larch, {} rows, {} written", figure(self.extent.load_rows as f64), written.name()),
                seconds(|load| load.load.nanos),
                seconds(|load| load.load.settle_nanos),
                seconds(|load| load.index_nanos),
                shown_middle(&loads, |load| load.load.each(load.load.written_bytes)),
                shown_middle(&loads, |load| kib(load.shape.flat_bytes as f64)),
                shown_middle(&loads, |load| kib(load.shape.btree_bytes as f64)),
            ]);
        }
        for run in quoted::YDB_TPCC {
            for (name, side) in [("flat", run.flat), ("tree", run.tree)] {
                let name = format!("YDB, {} cache, {name}", run.cache.text());
                let numbers = [side.load, side.compaction, side.index].map(|seconds| seconds.written.to_owned());
                rows.push([vec![name], numbers.to_vec(), vec!["-".to_owned(); 3]].concat());
            }
        }
        let columns = [
            "",
            "load, s",
            "compaction, s",
            "secondary index, s",
            "bytes written a row",
            "KiB of flat lists",
            "KiB of trees",
        ];
        let caption = format!(
            "Rows loaded in a random order by commits, then compacted, then indexed by a part of their values; median of {}. YDB's are TPC-C \
             with {} warehouses",
            self.extent.repeats,
            figure(quoted::YDB_TPCC[0].warehouses.value())
        );
        grid(caption, columns, rows)
    }

    fn memory(&self) -> Block {
        let rows = CACHES.into_iter().flat_map(|cache| {
            ARMS.map(|arm| (cache, arm, self.reads(cache, DEPTHS[1], arm), self.shape(arm.written())))
        });
        table(
            "Memory of the table as the database, which has no other, reports it after gets with 32 under way. A list and a node are pages of one cache and are \
             counted in the same way",
            rows,
            &[
                ("", &|(cache, arm, ..)| format!("cache {}, {}", cache_name(*cache), arm.name())),
                ("KiB of indexes in files", &|(.., shape)| figure(kib((shape.flat_bytes + shape.btree_bytes) as f64))),
                ("KiB of the one that is read", &|(_, arm, _, shape)| {
                    figure(kib(if arm.is_flat() { shape.flat_bytes } else { shape.btree_bytes } as f64))
                }),
                ("KiB of index in the cache", &|(_, _, runs, _)| {
                    shown_middle(runs, |run| kib(run.cached_index_bytes as f64))
                }),
                ("KiB of all memory", &|(_, _, runs, _)| shown_middle(runs, |run| kib(run.memory_bytes as f64))),
                ("KiB that cannot be evicted", &|(.., shape)| figure(kib(shape.manifest_bytes as f64))),
            ],
        )
    }

    fn instruction_table(&self) -> Block {
        let flat = self.instructions(Arm::Flat);
        let caption = format!(
            "Instructions of a get with a cache of 4x, counted by callgrind in a process of its own over {} gets of rows drawn alike, after \
             the index was brought into memory",
            self.extent.counted_gets
        );
        table(
            caption,
            ARMS.map(|arm| (arm.name(), self.instructions(arm))),
            &[
                ("", &|(name, _)| (*name).to_owned()),
                ("instructions", &|(_, each)| each.map_or("not counted".to_owned(), figure)),
                ("for flat", &|(_, each)| shown(each.zip(flat).map(|(each, flat)| each / flat))),
            ],
        )
    }

    /// Says what is counted, or why nothing was.
    fn how_counted(&self) -> String {
        match ARMS.into_iter().find_map(|arm| self.counted(arm)?.why_not) {
            Some(why) => format!("Instructions were not counted: {why}"),
            None => "Counts are those outside the system; the reads from disk of a get are in them with their checks."
                .to_owned(),
        }
    }

    pub fn goals(&self) -> Vec<Goal> {
        let both = self.shape(Written::Both);
        let least = mib(both.least_file_bytes as f64);
        let mut goals = vec![
            Goal::at_least(1024.0, "MiB of the least file, so that the goals hold", Some(least)),
            Goal::at_least(32.0, "MiB of all flat lists, so that the goals hold", Some(mib(both.flat_bytes as f64))),
        ];
        for cache in CACHES[3..].iter().copied() {
            for arm in [Arm::Tree, Arm::TreeAlone] {
                let [one, many] = DEPTHS.map(|depth| [arm, Arm::Flat].map(|arm| self.reads(cache, depth, arm)));
                let (name, arm) = (cache_name(cache), arm.name());
                goals.push(Goal::at_least(
                    2.0,
                    format!("cache {name}, 32 under way, {arm}: gets a second for flat"),
                    ratio(&many[0], &many[1], YcsbRun::per_second),
                ));
                goals.push(Goal::at_most(
                    0.5,
                    format!("cache {name}, one under way, {arm}: bytes read a get for flat"),
                    ratio(&one[0], &one[1], read_each),
                ));
            }
        }
        for arm in [Arm::Tree, Arm::TreeAlone] {
            let both = self.instructions(arm).zip(self.instructions(Arm::Flat));
            let what = format!("cache 4x, {}: instructions of a get for flat", arm.name());
            goals.push(Goal::at_most(1.02, what, both.map(|(tree, flat)| tree / flat)));
        }
        goals
    }
}
