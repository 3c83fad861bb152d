//! Keeps track of the records that exist while clients insert. All clients of a run share this state.
//!
//! If a workload has no inserts, its clients share nothing, and their [`View`] contains the number of the last
//! record itself.
//!
//! Any thread may call any function of this module. An insert takes its number with one atomic addition, and reports
//! its end with one atomic store. The limit is the number up to which all records exist. When an insert has ended,
//! its thread moves the limit if a lock is free. It waits for the lock only if its number is very far beyond the
//! limit.

#[cfg(test)]
mod tests;

use crate::generator::{Constants, Zipfian};
use os::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use std::collections::BTreeSet;

/// How far the number of an acknowledged insert may lie beyond the limit up to which all records exist. A number
/// that lies further away is kept under a lock.
const WINDOW: i64 = 1 << 20;

/// The most draws for one record. They take a few milliseconds. A client that draws for this long does not notice
/// that its time is over or that the run should end.
const DRAWS: u32 = 1 << 16;

/// The numbers of records that are inserted: `AcknowledgedCounterGenerator`. All records up to the limit exist.
pub struct Inserts {
    next: AtomicI64,
    limit: AtomicI64,
    window: Box<[AtomicBool]>,
    /// Acknowledged numbers that are too far beyond the limit for the window. The original fails on such a number.
    far: Mutex<BTreeSet<i64>>,
}

impl Inserts {
    /// Inserts that follow the first `records` records.
    pub fn after(records: i64) -> Inserts {
        Inserts {
            next: AtomicI64::new(records),
            limit: AtomicI64::new(records - 1),
            window: (0..WINDOW).map(|_| AtomicBool::new(false)).collect(),
            far: Mutex::new(BTreeSet::new()),
        }
    }

    /// Returns the number of the next record. The caller must insert this record and then call
    /// [`Self::acknowledge`].
    pub fn take(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The limit: the record with this number and all records before it exist.
    #[inline]
    pub fn limit(&self) -> i64 {
        self.limit.load(Ordering::Acquire)
    }

    /// Notes that the insert of record `number` has ended. If the insert has failed, the record does not
    /// exist, as in the original.
    pub fn acknowledge(&self, number: i64) {
        if number - self.limit() >= WINDOW {
            let mut far = self.far.lock();
            far.insert(number);
            self.advance(&mut far);
            return;
        }
        self.slot(number).store(true, Ordering::Release);
        if let Some(mut far) = self.far.try_lock() {
            self.advance(&mut far);
        }
    }

    /// Moves the limit as far as possible. The caller holds the lock, so only one thread at a time moves the
    /// limit.
    fn advance(&self, far: &mut BTreeSet<i64>) {
        let before = self.limit();
        let mut limit = before;
        loop {
            while far.first().is_some_and(|number| number - limit < WINDOW) {
                let number = far.pop_first().expect("it was there to look at");
                self.slot(number).store(true, Ordering::Relaxed);
            }
            let next = self.slot(limit + 1);
            if !next.load(Ordering::Acquire) {
                break;
            }
            next.store(false, Ordering::Relaxed);
            limit += 1;
        }
        if limit != before {
            self.limit.store(limit, Ordering::Release);
        }
    }

    fn slot(&self, number: i64) -> &AtomicBool {
        &self.window[(number & (WINDOW - 1)) as usize]
    }
}

/// The constants of the zipfian numbers over all records. When a client finds that records were inserted, it extends
/// the constants, and all clients then use them. So each insert costs the computation of one power in total, instead
/// of one for each client.
pub struct Growth {
    zipfian: Zipfian,
    /// The version is odd while the constants are being written.
    version: AtomicU64,
    count: AtomicI64,
    zetan: AtomicU64,
    eta: AtomicU64,
    writing: Mutex<()>,
}

impl Growth {
    /// Shares the constants of `zipfian`.
    pub fn from(zipfian: Zipfian) -> Growth {
        let Constants { count, zetan, eta } = zipfian.constants();
        Growth {
            zipfian,
            version: AtomicU64::new(0),
            count: AtomicI64::new(count),
            zetan: AtomicU64::new(zetan.to_bits()),
            eta: AtomicU64::new(eta.to_bits()),
            writing: Mutex::new(()),
        }
    }

    /// Updates the constants of `zipfian` so that they cover `items` items. If another thread is changing the
    /// shared constants at this moment, `zipfian` keeps its older constants.
    #[inline]
    pub fn follow(&self, zipfian: &mut Zipfian, items: i64) {
        if items > zipfian.constants().count {
            self.catch_up(zipfian, items);
        }
    }

    fn catch_up(&self, zipfian: &mut Zipfian, items: i64) {
        if let Some(read) = self.read()
            && read.count >= items
        {
            zipfian.set_constants(read);
            return;
        }
        let Some(_writing) = self.writing.try_lock() else { return };
        let before = self.read().expect("only the holder of the lock writes");
        let constants = if before.count < items { self.zipfian.grown(before, items) } else { before };
        self.write(constants);
        zipfian.set_constants(constants);
    }

    fn read(&self) -> Option<Constants> {
        let version = self.version.load(Ordering::SeqCst);
        let count = self.count.load(Ordering::SeqCst);
        let zetan = f64::from_bits(self.zetan.load(Ordering::SeqCst));
        let eta = f64::from_bits(self.eta.load(Ordering::SeqCst));
        let is_whole = version.is_multiple_of(2) && self.version.load(Ordering::SeqCst) == version;
        is_whole.then_some(Constants { count, zetan, eta })
    }

    fn write(&self, constants: Constants) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.count.store(constants.count, Ordering::SeqCst);
        self.zetan.store(constants.zetan.to_bits(), Ordering::SeqCst);
        self.eta.store(constants.eta.to_bits(), Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }
}

/// The range of records that a client may ask for.
#[derive(Clone)]
pub enum View {
    /// No client inserts: the number of the last record, which does not change.
    Fixed(i64),
    /// Clients insert.
    Growing(Arc<Inserts>),
}

impl View {
    /// The last record that may be asked for.
    #[inline]
    pub fn last(&self) -> i64 {
        match self {
            View::Fixed(last) => *last,
            View::Growing(inserts) => inserts.limit(),
        }
    }

    /// Repeats `draw` until it returns a record that exists and may be asked for. If [`DRAWS`] draws find no such
    /// record, most of the range does not exist. The original would continue to draw, perhaps for hours. Here, the
    /// last number drawn is mapped to a record that exists.
    #[inline]
    pub fn redraw(&self, mut draw: impl FnMut() -> i64) -> i64 {
        for _ in 1..DRAWS {
            let number = draw();
            if number <= self.last() {
                return number;
            }
        }
        draw() % (self.last() + 1)
    }
}
