//! What a million operations cost: processor time of client and store, bytes of the disk, and money if a price is
//! given. The figures are computed from what a run has counted, in the same way for every report.

#[cfg(test)]
mod tests;

use super::figures::{BYTES, Figures, NANOS};
use super::text::{bytes, three};
use crate::cost::{Clients, Cost, Snapshot};
use crate::measured::{Change, Measured};
use crate::store::StoreUse;
use serde::{Deserialize, Serialize};

/// What a million operations cost. A figure that is not known is `None`, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Million {
    /// Processor time of client and store together, in seconds.
    pub cpu_seconds: Option<f64>,
    /// The part of `cpu_seconds` that the client used: to make requests, to wait until they are due, and to keep its
    /// counts.
    pub client_cpu_seconds: Option<f64>,
    /// The store's part of `cpu_seconds`.
    pub store_cpu_seconds: Option<f64>,
    /// Bytes read from the disk.
    pub read_bytes: Option<f64>,
    /// Who counted `read_bytes`.
    #[serde(default)]
    pub read_by: Option<Counts>,
    /// Bytes written to the disk, including the bytes of the log.
    pub written_bytes: Option<f64>,
    /// Who counted `written_bytes`.
    #[serde(default)]
    pub written_by: Option<Counts>,
    /// Bytes that the disks of the machine read meanwhile, for all programs.
    #[serde(default)]
    pub device_read_bytes: Option<f64>,
    /// Bytes that the disks of the machine wrote meanwhile, for all programs.
    #[serde(default)]
    pub device_written_bytes: Option<f64>,
    /// What the processors cost, in the currency of the price.
    pub money: Option<f64>,
}

/// Who counted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// The store, for its log and its files.
    Store,
    /// The system, for the processes of the store.
    Processes,
}

impl Counts {
    /// Who counts, in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Processes => "system",
        }
    }

    /// Who counts, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Store => "as the store counts its log and files",
            Self::Processes => "as the system counts for the processes",
        }
    }
}

/// The resources that a number of operations used.
#[derive(Clone, Copy, Debug)]
pub struct Used<'u> {
    /// The operations.
    pub operations: u64,
    /// Processor time of this process, in nanoseconds.
    pub process_nanos: u64,
    /// The client's own part of `process_nanos`, in nanoseconds, if it is known.
    pub own_nanos: Option<f64>,
    /// What the store used outside this process.
    pub store: StoreUse,
    /// The counters of the store.
    pub counters: &'u [Change],
    /// The bytes that were read from the disk for this process, and the bytes that were written to it.
    pub disk: (Option<u64>, Option<u64>),
    /// The same of the disks of the machine, for all programs.
    pub device: (Option<u64>, Option<u64>),
}

/// Measures what the process uses from the moment when the meter is made. A meter is for programs that do not
/// measure with a run of the harness.
pub struct Meter {
    before: Snapshot,
}

impl Meter {
    /// Begins now. `store` is what the store has used up to now.
    pub fn start(store: StoreUse) -> Self {
        Self { before: Snapshot::take(store) }
    }

    /// What a million operations cost. `operations` is the number of operations since the start, and `store` is what
    /// the store has used up to now. If the store is in this process, the client's part is not known.
    pub fn million(&self, operations: u64, store: StoreUse, price: Option<f64>) -> Million {
        Million::of_cost(operations, &self.cost(store), price)
    }

    /// What was used since the start. `store` is what the store has used up to now.
    pub fn cost(&self, store: StoreUse) -> Cost {
        Cost::between(&self.before, &Snapshot::take(store), Clients::default(), 0)
    }
}

/// The names under which a store counts the bytes that it has read and written.
const READ: &[&str] = &["bytes read"];
const WRITTEN: &[&str] = &["bytes written", "log bytes", "log bytes written"];
/// A store that counts the bytes of its log alone does not count what it writes.
const FILES: &str = "bytes written";

impl Million {
    /// The cost of a run. `noop_nanos` is what an operation costs the client on a store that does nothing, if that
    /// was measured. `price` is what an hour of a processor costs. Failed operations are included, because they used
    /// the machine, too.
    pub fn of(measured: &Measured, noop_nanos: Option<f64>, price: Option<f64>) -> Self {
        let cost = &measured.cost;
        let operations = measured.operations + measured.failed;
        // Older results do not say where the store was. If such a result has the client's cost on a store that does
        // nothing, the measured store was in the process.
        let older = if noop_nanos.is_some() { StoreUse::InProcess } else { StoreUse::Unknown };
        let own = |noop: f64| cost.own_nanos(noop, operations) * operations as f64 + cost.gathering_nanos as f64;
        Self::used(
            Used {
                operations,
                process_nanos: cost.process_nanos(),
                own_nanos: noop_nanos.map(own),
                store: cost.store.unwrap_or(older),
                counters: &measured.counters,
                disk: (cost.disk_read_bytes, cost.disk_written_bytes),
                device: (cost.device_read_bytes, cost.device_written_bytes),
            },
            price,
        )
    }

    /// What a million operations cost, if only the number of operations and their `cost` are known. If the store is
    /// in the process, the client's part is not known.
    pub fn of_cost(operations: u64, cost: &Cost, price: Option<f64>) -> Self {
        let used = Used {
            operations,
            process_nanos: cost.process_nanos(),
            own_nanos: None,
            store: cost.store.unwrap_or(StoreUse::Unknown),
            counters: &[],
            disk: (cost.disk_read_bytes, cost.disk_written_bytes),
            device: (cost.device_read_bytes, cost.device_written_bytes),
        };
        Self::used(used, price)
    }

    /// Computes the cost of a million operations from what `used.operations` operations used.
    pub fn used(used: Used<'_>, price: Option<f64>) -> Self {
        if used.operations == 0 {
            return Self::default();
        }
        let millions = used.operations as f64 / 1e6;
        let seconds = |nanos: f64| nanos / 1e9 / millions;
        let process = used.process_nanos as f64;
        let (client, store, all) = match used.store {
            StoreUse::InProcess => {
                let own = used.own_nanos.map(|own| own.min(process));
                (own, own.map(|own| process - own), Some(process))
            }
            StoreUse::Server(server) => (Some(process), Some(server.nanos as f64), Some(process + server.nanos as f64)),
            StoreUse::Unknown => (Some(process), None, None),
        };
        let counted = |names: &[&str]| {
            let found = used.counters.iter().filter(|change| names.contains(&change.name.as_str()));
            let counts: Vec<u64> = found.filter_map(Change::counted).collect();
            (!counts.is_empty()).then(|| counts.iter().sum::<u64>())
        };
        // A store counts the bytes that it asked the system to read and write. If a store has no such counter, the
        // system's counts are used.
        let counts_files = used.counters.iter().any(|change| change.name == FILES);
        let by_store = (counted(READ), counted(WRITTEN).filter(|_| counts_files));
        let by_system = match used.store {
            StoreUse::InProcess => used.disk,
            StoreUse::Server(server) => (server.read_bytes, server.written_bytes),
            StoreUse::Unknown => (None, None),
        };
        let chosen = |store: Option<u64>, system: Option<u64>| {
            let counted = store.map(|bytes| (bytes, Counts::Store));
            counted.or(system.map(|bytes| (bytes, Counts::Processes))).unzip()
        };
        let (read, read_by) = chosen(by_store.0, by_system.0);
        let (written, written_by) = chosen(by_store.1, by_system.1);
        let each = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / millions);
        let all = all.map(seconds);
        Self {
            cpu_seconds: all,
            client_cpu_seconds: client.map(seconds),
            store_cpu_seconds: store.map(seconds),
            read_bytes: each(read),
            read_by,
            written_bytes: each(written),
            written_by,
            device_read_bytes: each(used.device.0),
            device_written_bytes: each(used.device.1),
            money: None,
        }
        .priced(price)
    }

    /// Adds to these figures the money that the processors cost, if an hour of a processor costs `price`.
    pub fn priced(self, price: Option<f64>) -> Self {
        Self { money: self.cpu_seconds.zip(price).map(|(seconds, price)| seconds / 3600.0 * price), ..self }
    }

    /// Adds these figures to the list of a result.
    pub fn figures(&self, all: &mut Figures) {
        let nanos = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e9);
        let of = "a million operations";
        for (name, value, unit) in [
            ("processor", nanos(self.cpu_seconds), NANOS),
            ("processor of the client", nanos(self.client_cpu_seconds), NANOS),
            ("processor of the store", nanos(self.store_cpu_seconds), NANOS),
            ("read from the disk", self.read_bytes, BYTES),
            ("written to the disk", self.written_bytes, BYTES),
            ("money for processors", self.money, ""),
        ] {
            all.add(of, name, value, unit);
            let by = if name.starts_with("read") { self.read_by } else { self.written_by };
            if unit == BYTES
                && let Some(by) = by
            {
                all.note(by.name().to_owned());
            }
        }
        all.add(of, "read by the machine's disks for all programs", self.device_read_bytes, BYTES);
        all.add(of, "written by the machine's disks for all programs", self.device_written_bytes, BYTES);
    }

    /// A line for people, without a line end. `None`: no operation was done.
    pub fn text(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        let part =
            |seconds: Option<f64>| seconds.map_or("not known".to_owned(), |seconds| format!("{} s", three(seconds)));
        let size = |count: Option<f64>| count.map_or("not known".to_owned(), |count| bytes(count as u64));
        let mut text = match (self.client_cpu_seconds, self.cpu_seconds) {
            (None, Some(all)) => format!("{} s of processors, client and store together", three(all)),
            _ => {
                format!("processors: client {}, store {}", part(self.client_cpu_seconds), part(self.store_cpu_seconds))
            }
        };
        let by = |counts: Option<Counts>| counts.map_or(String::new(), |counts| format!(" {}", counts.name()));
        let (read, written) = (size(self.read_bytes), size(self.written_bytes));
        let read = if self.read_by == self.written_by { read } else { read + &by(self.read_by) };
        text.push_str(&format!("; disk: read {read}, written {written}{}", by(self.written_by)));
        if let (Some(read), Some(written)) = (self.device_read_bytes, self.device_written_bytes) {
            let (read, written) = (bytes(read as u64), bytes(written as u64));
            text.push_str(&format!("; the machine's disks, for all programs: read {read}, written {written}"));
        }
        if let Some(money) = self.money {
            text.push_str(&format!("; money for processors: {}", self::money(money)));
        }
        Some(text)
    }
}

/// An amount of money with three significant digits.
pub fn money(amount: f64) -> String {
    if amount <= 0.0 {
        return "0".to_owned();
    }
    let decimals = (2 - amount.log10().floor() as i32).clamp(0, 12) as usize;
    format!("{amount:.decimals$}")
}
