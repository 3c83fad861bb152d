//! Metrics as text for other programs: JSON, and the exposition format of Prometheus. This module knows the names of
//! the metrics, but not how anything is counted. Both texts are written from the same list, so they agree.

use super::Metrics;
use os::store::{Counts, Requests};
use pages::PageKind;
use pages::counters::{Pages, Reason};
use std::fmt::Write;

/// A metric with its values. If it has several, labels tell them apart.
struct Family {
    /// The name of the metric, without `larch_` before it and `_total` after it.
    name: &'static str,
    help: &'static str,
    kind: MetricKind,
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricKind {
    /// A value that only grows.
    Counter,
    /// A value that grows and shrinks.
    Gauge,
}

struct Sample {
    labels: Vec<(&'static str, String)>,
    value: u64,
}

impl Sample {
    fn labelled(labels: &[(&'static str, &str)], value: u64) -> Self {
        // The names of page kinds are for people and may have spaces, which labels replace by `_`.
        let labels = labels.iter().map(|&(name, value)| (name, value.replace(' ', "_")));
        Self { labels: labels.collect(), value }
    }
}

impl Metrics {
    /// The metrics as a JSON object, with a member for each metric of [`Metrics::to_prometheus`]. Its name is that of
    /// the metric without `larch_` and `_total`: `larch_flushes_total` → `flushes`. Its value is a number, or, for a
    /// metric with labels, an array of objects with the labels and a member `value`. All numbers are whole and below
    /// 2^64. A program that reads them as floating-point numbers rounds those above 2^53.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{");
        for (i, family) in self.families().iter().enumerate() {
            out.push_str(if i == 0 { "\n  " } else { ",\n  " });
            push(&mut out, format_args!("\"{}\": ", family.name));
            match family.samples.as_slice() {
                [Sample { labels, value }] if labels.is_empty() => push(&mut out, format_args!("{value}")),
                samples => {
                    out.push('[');
                    for (i, Sample { labels, value }) in samples.iter().enumerate() {
                        out.push_str(if i == 0 { "\n    {" } else { ",\n    {" });
                        for (name, label) in labels {
                            push(&mut out, format_args!("\"{name}\": \"{}\", ", escaped(label)));
                        }
                        push(&mut out, format_args!("\"value\": {value}}}"));
                    }
                    out.push_str(if samples.is_empty() { "]" } else { "\n  ]" });
                }
            }
        }
        out.push_str("\n}\n");
        out
    }

    /// The metrics in the text format of Prometheus, version 0.0.4, which is served as `text/plain; version=0.0.4`.
    /// All names begin with `larch_`, and those of counters end with `_total`. The labels are `owner` for memory,
    /// `kind` and `reason` for pages, `reason` for written bytes and stalls, `work` for failed work, and `kind` for
    /// requests to a store.
    pub fn to_prometheus(&self) -> String {
        let mut out = String::new();
        for Family { name, help, kind, samples } in self.families() {
            let (kind, end) = match kind {
                MetricKind::Counter => ("counter", "_total"),
                MetricKind::Gauge => ("gauge", ""),
            };
            push(&mut out, format_args!("# HELP larch_{name}{end} {help}\n# TYPE larch_{name}{end} {kind}\n"));
            for Sample { labels, value } in samples {
                push(&mut out, format_args!("larch_{name}{end}"));
                for (i, (label, of)) in labels.iter().enumerate() {
                    let open = if i == 0 { '{' } else { ',' };
                    push(&mut out, format_args!("{open}{label}=\"{}\"", escaped(of)));
                }
                push(&mut out, format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
            }
        }
        out
    }

    fn families(&self) -> Vec<Family> {
        let mut families = self.memory_families();
        families.extend(self.read_families());
        families.extend(self.write_families());
        families.extend(self.state_families());
        families.extend(self.store_families());
        families
    }

    fn memory_families(&self) -> Vec<Family> {
        let owners = self.memory.owners();
        let kinds = PageKind::ALL.map(|kind| Sample::labelled(&[("kind", kind.name())], self.cached_bytes(kind)));
        vec![
            Family {
                name: "memory_bytes",
                help: "Memory by owner. The cache counts for all databases that share it.",
                kind: MetricKind::Gauge,
                samples: owners.map(|(owner, bytes)| Sample::labelled(&[("owner", owner)], bytes)).into(),
            },
            gauge("memory_sum_bytes", "Memory of all owners.", self.memory.total_bytes()),
            Family {
                name: "cached_bytes",
                help: "Pages in memory by kind.",
                kind: MetricKind::Gauge,
                samples: kinds.into(),
            },
            gauge("cache_budget_bytes", "Memory that the cache may use.", self.cache.budget_bytes),
            gauge("cache_used_bytes", "Memory that the cache uses, with pages being read.", self.cache.used_bytes),
            gauge("cache_pinned_bytes", "Pages in memory that are pinned.", self.cache.pinned_bytes),
            gauge("cache_held_bytes", "Pages kept for values that callers have.", self.cache.held_bytes),
            gauge("cache_cursor_bytes", "Pages kept by ranges that are being read.", self.cache.cursor_bytes),
            gauge("cache_kept_bytes", "Pages that stay because their tables are to be in memory.", self.kept_bytes),
            gauge("cache_in_flight_bytes", "Reserved for pages being read.", self.cache.in_flight_bytes),
            gauge(
                "cache_backed_bytes",
                "Memory that the cache has from the system for pages.",
                self.cache.backed_bytes,
            ),
            gauge("cache_pages", "Pages in memory.", self.cache.frames),
        ]
    }

    fn read_families(&self) -> Vec<Family> {
        vec![
            gauge("cache_queued_sessions", "Readers that wait for room.", self.cache.queued as u64),
            gauge("open_files", "Files that are open, in use or not.", self.cache.open_files as u64),
            counter("excerpts_found", "Rows found in memory without their pages.", self.cache.excerpts_found),
            counter("excerpts_kept", "Rows that stayed in memory when their pages left.", self.cache.excerpts_kept),
            self.pages("page_hits", "Pages found in memory.", |pages| pages.hits),
            self.pages("page_reads", "Pages read from disk.", |pages| pages.faults),
            self.pages("page_read_bytes", "Bytes of the pages read from disk.", |pages| pages.read_bytes),
            Family {
                name: "rounds",
                help: "Times that readers waited for the disk.",
                kind: MetricKind::Counter,
                samples: Reason::ALL
                    .map(|reason| Sample::labelled(&[("reason", reason.name())], self.pages.rounds(reason)))
                    .into(),
            },
        ]
    }

    fn write_families(&self) -> Vec<Family> {
        vec![
            Family {
                name: "written_bytes",
                help: "Bytes written, by the work that wrote them.",
                kind: MetricKind::Counter,
                samples: [
                    ("log", self.log_bytes),
                    ("flush", self.flush_bytes),
                    ("compaction", self.compaction_bytes),
                    ("import", self.import_bytes),
                ]
                .map(|(reason, bytes)| Sample::labelled(&[("reason", reason)], bytes))
                .into(),
            },
            counter("flushes", "Flushes that succeeded.", self.flushes),
            counter("compactions", "Compactions that succeeded.", self.compactions),
            counter("worker_compactions", "Compactions that workers have done.", self.worker_compactions),
            counter("worker_compaction_bytes", "Bytes written by workers.", self.worker_compaction_bytes),
            counter(
                "failed_worker_compactions",
                "Compactions that a worker has not done.",
                self.failed_worker_compactions,
            ),
            counter("trivial_moves", "Files moved to a deeper level as they are.", self.trivial_moves),
            gauge("held_files", "Files that nothing needs but followers.", self.held_files),
            gauge("leftover_files", "Files that nothing needs and that could not be removed yet.", self.leftover_files),
            counter("failed_cleanups", "Failed attempts to remove a file or renew a manifest.", self.failed_cleanups),
            counter("slowed_micros", "How long commits were slowed down, in microseconds.", self.slowed_micros),
            counter("yielded_micros", "How long compactions yielded to commits, in microseconds.", self.yielded_micros),
            Family {
                name: "stalls",
                help: "Commits that waited for background work, by the reason.",
                kind: MetricKind::Counter,
                samples: [("level0", self.level0_stalls), ("write_buffer", self.write_buffer_stalls)]
                    .map(|(reason, commits)| Sample::labelled(&[("reason", reason)], commits))
                    .into(),
            },
            Family {
                name: "stall_micros",
                help: "How long commits waited for background work, in microseconds.",
                kind: MetricKind::Counter,
                samples: [("level0", self.level0_stall_micros), ("write_buffer", self.write_buffer_stall_micros)]
                    .map(|(reason, micros)| Sample::labelled(&[("reason", reason)], micros))
                    .into(),
            },
            Family {
                name: "failed_work",
                help: "Tries of background work that failed.",
                kind: MetricKind::Counter,
                samples: [("flush", self.failed_flushes), ("compaction", self.failed_compactions)]
                    .map(|(work, tries)| Sample::labelled(&[("work", work)], tries))
                    .into(),
            },
        ]
    }

    fn state_families(&self) -> Vec<Family> {
        vec![
            gauge("troubles", "Background work that failed and has not succeeded since.", self.troubles.len() as u64),
            counter(
                "restored_bytes",
                "Memory of pages loaded because they were in memory at the last close.",
                self.restored_bytes,
            ),
            counter("refused_states", "Warm states that could not be used.", self.refused_states),
            counter("scrubbed_bytes", "Bytes read by the background scrub.", self.scrubbed_bytes),
            counter("scrub_rounds", "Rounds of the background scrub through all files.", self.scrub_rounds),
            counter("damaged_pages", "Pages that the background scrub found damaged.", self.damaged_pages),
            gauge("pinned_versions", "Snapshots and ranges that pin a version.", self.pinned_versions as u64),
            gauge("files", "Files of all tables.", self.files),
            gauge("file_bytes", "Bytes of the files of all tables.", self.file_bytes),
        ]
    }

    /// The metrics about the store, if the database is in one.
    fn store_families(&self) -> Vec<Family> {
        let Some(bill) = &self.store else { return Vec::new() };
        let Counts { requests: Requests { puts, gets, lists, deletes }, retries, read_bytes, written_bytes } =
            bill.counts;
        let requests = [("put", puts), ("get", gets), ("list", lists), ("delete", deletes)];
        let mut families = vec![
            Family {
                name: "store_requests",
                help: "Requests to the store, by kind, with those that were made again.",
                kind: MetricKind::Counter,
                samples: requests.map(|(kind, requests)| Sample::labelled(&[("kind", kind)], requests)).into(),
            },
            counter("store_retries", "Requests to the store that were made again after an error.", retries),
            counter("store_read_bytes", "Bytes of objects read from the store.", read_bytes),
            counter("store_written_bytes", "Bytes of objects written to the store.", written_bytes),
        ];
        if let Some(billionths) = bill.billionths() {
            let help = "What the store was asked, in billionths of the currency of its prices.";
            families.push(counter("store_cost_billionths", help, billionths));
        }
        families
    }

    /// A count of pages for each reason and kind, without zeros.
    fn pages(&self, name: &'static str, help: &'static str, count: impl Fn(Pages) -> u64) -> Family {
        let both = Reason::ALL.into_iter().flat_map(|reason| PageKind::ALL.map(|kind| (reason, kind)));
        let counted = both.map(|(reason, kind)| (reason, kind, count(self.pages.pages(reason, kind))));
        let samples = counted
            .filter(|(.., value)| *value > 0)
            .map(|(reason, kind, value)| Sample::labelled(&[("reason", reason.name()), ("kind", kind.name())], value));
        Family { name, help, kind: MetricKind::Counter, samples: samples.collect() }
    }
}

fn gauge(name: &'static str, help: &'static str, value: u64) -> Family {
    Family { name, help, kind: MetricKind::Gauge, samples: vec![Sample { labels: Vec::new(), value }] }
}

fn counter(name: &'static str, help: &'static str, value: u64) -> Family {
    Family { name, help, kind: MetricKind::Counter, samples: vec![Sample { labels: Vec::new(), value }] }
}

/// Appends to a string, which cannot fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes any text");
}

/// Escapes a label for use within double quotes, in JSON and in the format of Prometheus. Labels come from this
/// program and have no control characters other than newlines.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;

/// Serializes to the same object as [`Metrics::to_json`].
#[cfg(feature = "serde")]
impl serde::Serialize for Metrics {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.families().into_iter().map(|family| (family.name, family)))
    }
}

/// Serializes to the value of the metric, or to an array of its values with labels.
#[cfg(feature = "serde")]
impl serde::Serialize for Family {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.samples.as_slice() {
            [Sample { labels, value }] if labels.is_empty() => serializer.serialize_u64(*value),
            samples => serializer.collect_seq(samples),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Sample {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(self.labels.len() + 1))?;
        for (name, label) in &self.labels {
            map.serialize_entry(name, label)?;
        }
        map.serialize_entry("value", &self.value)?;
        map.end()
    }
}
