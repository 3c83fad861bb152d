//! Metrics as text for other programs: JSON, and the exposition format of Prometheus. It knows names, not how anything is
//! counted.
//!
//! Both are written from one list, so that they say the same: a name, what it is, and its values, of which there are several
//! where a label tells them apart.

use super::Metrics;
use pages::PageKind;
use pages::counters::{Pages, Reason};
use std::fmt::Write;

/// One number by its names, and by labels where there are several.
struct Family {
    /// Without the engine's name before it and the unit of counters behind it.
    name: &'static str,
    help: &'static str,
    kind: MetricKind,
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricKind {
    /// Only grows.
    Counter,
    /// Is what it is now.
    Gauge,
}

struct Sample {
    labels: Vec<(&'static str, String)>,
    value: u64,
}

impl Sample {
    fn labelled(labels: &[(&'static str, &str)], value: u64) -> Self {
        // Names of kinds are for people and may have spaces.
        let labels = labels.iter().map(|&(name, value)| (name, value.replace(' ', "_")));
        Self { labels: labels.collect(), value }
    }
}

impl Metrics {
    /// The numbers as a JSON object: a member for each metric of [`Metrics::to_prometheus`], without `larch_` before its
    /// name and `_total` behind it. Its value is a number, or for a metric with labels an array of objects with the labels and
    /// `value`. All numbers are whole and below 2^64; readers that take them for floating point lose what is beyond 2^53.
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

    /// The numbers in the text format of Prometheus, version 0.0.4: to be served as `text/plain; version=0.0.4`. Names
    /// begin with `larch_`; those of counters end with `_total`. Labels: `owner` of memory, `kind` and `reason` of pages.
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
        let one = |value| vec![Sample { labels: Vec::new(), value }];
        let gauge = |name, help, value| Family { name, help, kind: MetricKind::Gauge, samples: one(value) };
        let counter = |name, help, value| Family { name, help, kind: MetricKind::Counter, samples: one(value) };
        let owners = self.memory.owners();
        let kinds = PageKind::ALL.map(|kind| Sample::labelled(&[("kind", kind.name())], self.cached_bytes(kind)));
        vec![
            Family {
                name: "memory_bytes",
                help: "Memory by owner, the cache's of all databases that share it.",
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
            gauge("cache_budget_bytes", "What the cache may use.", self.cache.budget_bytes),
            gauge("cache_used_bytes", "What the cache uses, pages being read among it.", self.cache.used_bytes),
            gauge("cache_pinned_bytes", "Pages in memory that somebody refers to.", self.cache.pinned_bytes),
            gauge("cache_held_bytes", "Pages kept for values that callers have.", self.cache.held_bytes),
            gauge("cache_cursor_bytes", "Pages kept by ranges that are being read.", self.cache.cursor_bytes),
            gauge("cache_kept_bytes", "Pages that stay because their tables are to be in memory.", self.kept_bytes),
            gauge("cache_in_flight_bytes", "Reserved for pages being read.", self.cache.in_flight_bytes),
            gauge("cache_backed_bytes", "What the system has given for pages.", self.cache.backed_bytes),
            gauge("cache_pages", "Pages in memory.", self.cache.frames),
            gauge("cache_queued_sessions", "Readers that wait for room.", self.cache.queued as u64),
            gauge("open_files", "Files open, kept or in use.", self.cache.open_files as u64),
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
            Family {
                name: "written_bytes",
                help: "Bytes written by what wrote them.",
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
            counter("flushes", "Flushes done.", self.flushes),
            counter("compactions", "Compactions done.", self.compactions),
            counter("trivial_moves", "Files moved to a deeper level as they are.", self.trivial_moves),
            gauge("leftover_files", "Files that nothing needs and that could not be removed yet.", self.leftover_files),
            counter(
                "failed_cleanups",
                "Attempts to remove a file or renew a manifest that are made again.",
                self.failed_cleanups,
            ),
            counter("slowed_micros", "Time that commits were slowed, in microseconds.", self.slowed_micros),
            Family {
                name: "stalls",
                help: "Commits that waited for background work, by what they waited for.",
                kind: MetricKind::Counter,
                samples: [("level0", self.level0_stalls), ("write_buffer", self.write_buffer_stalls)]
                    .map(|(reason, commits)| Sample::labelled(&[("reason", reason)], commits))
                    .into(),
            },
            Family {
                name: "stall_micros",
                help: "How long they waited, in microseconds.",
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
            gauge("troubles", "Background work that failed and has not succeeded since.", self.troubles.len() as u64),
            counter("restored_bytes", "Memory brought back as it was at the last close.", self.restored_bytes),
            counter("refused_states", "Saved states of memory that could not be used.", self.refused_states),
            counter("scrubbed_bytes", "Bytes read by the background scrub.", self.scrubbed_bytes),
            counter("scrub_rounds", "Rounds of the background scrub through all files.", self.scrub_rounds),
            counter("damaged_pages", "Pages that the background scrub found damaged.", self.damaged_pages),
            gauge("pinned_versions", "Snapshots and ranges that keep a version.", self.pinned_versions as u64),
            gauge("files", "Files of all tables.", self.files),
            gauge("file_bytes", "Their bytes.", self.file_bytes),
        ]
    }

    /// A count of pages by reason and kind; of those that never occurred nothing is said.
    fn pages(&self, name: &'static str, help: &'static str, count: impl Fn(Pages) -> u64) -> Family {
        let both = Reason::ALL.into_iter().flat_map(|reason| PageKind::ALL.map(|kind| (reason, kind)));
        let counted = both.map(|(reason, kind)| (reason, kind, count(self.pages.pages(reason, kind))));
        let samples = counted
            .filter(|(.., value)| *value > 0)
            .map(|(reason, kind, value)| Sample::labelled(&[("reason", reason.name()), ("kind", kind.name())], value));
        Family { name, help, kind: MetricKind::Counter, samples: samples.collect() }
    }
}

/// Appends to a string, which cannot fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes any text");
}

/// A label within double quotes, as JSON and Prometheus both read it. Labels are names of ours, without control characters.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
