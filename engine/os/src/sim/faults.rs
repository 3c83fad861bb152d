//! The faults of a simulated disk, and when they happen. This module does not know what the operations do.

use super::random::Draws;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

/// The counts of operations, and the faults that were asked for. Many of them happen at a certain count.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    operations: u64,
    reads: u64,
    syncs: u64,
    /// Fails these operations.
    some: Option<(Range<u64>, ErrorKind)>,
    /// Fails every operation after this one.
    after: Option<(u64, ErrorKind)>,
    /// Fails to open or create files whose names end with this text.
    opens: Option<(String, ErrorKind)>,
    /// Fails links.
    links: Option<ErrorKind>,
    /// Fails about one look in this many.
    looks: Option<(u32, ErrorKind)>,
    /// Fails every operation that changes names or opens a file to change it.
    changes: Option<ErrorKind>,
    short_read: Option<u64>,
    crash_at_sync: Option<u64>,
    /// Fails this sync.
    one_sync: Option<(u64, ErrorKind)>,
    crashed: bool,
}

impl Faults {
    /// Counts an operation and says whether it fails.
    pub(super) fn operation(&mut self) -> io::Result<()> {
        if self.crashed {
            return Err(crashed());
        }
        self.operations += 1;
        if let Some((_, kind)) = self.some.as_ref().filter(|(some, _)| some.contains(&self.operations)) {
            return Err(injected(*kind));
        }
        match self.after {
            Some((last, kind)) if self.operations > last => Err(injected(kind)),
            _ => Ok(()),
        }
    }

    /// Counts an open or a creation of a file, which is an operation.
    pub(super) fn open(&mut self, path: &Path) -> io::Result<()> {
        self.operation()?;
        match &self.opens {
            Some((end, kind)) if path.to_string_lossy().ends_with(end) => Err(injected(*kind)),
            _ => Ok(()),
        }
    }

    /// Decides whether a look fails. Looks are reads, opens of existing files, listings and queries of lengths.
    pub(super) fn look(&self, draws: &mut Draws) -> io::Result<()> {
        match self.looks {
            Some((one_in, kind)) if draws.below(one_in as usize) == 0 => Err(injected(kind)),
            _ => Ok(()),
        }
    }

    /// Counts a link, which is an operation.
    pub(super) fn link(&mut self) -> io::Result<()> {
        self.operation()?;
        self.links.map_or(Ok(()), |kind| Err(injected(kind)))
    }

    /// Decides whether an operation fails that changes names or opens a file for writing. The caller counts it.
    pub(super) fn change(&self) -> io::Result<()> {
        self.changes.map_or(Ok(()), |kind| Err(injected(kind)))
    }

    /// Counts a read, which is an operation. Returns whether the read is cut short.
    pub(super) fn read(&mut self) -> io::Result<bool> {
        self.operation()?;
        self.reads += 1;
        Ok(self.short_read.take_if(|at| *at == self.reads).is_some())
    }

    /// Counts a sync, which is an operation.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.syncs += 1;
        if self.crash_at_sync.is_some_and(|at| self.syncs >= at) {
            self.crashed = true;
        }
        self.operation()?;
        match self.one_sync.take_if(|(at, _)| *at == self.syncs) {
            Some((_, kind)) => Err(injected(kind)),
            None => Ok(()),
        }
    }

    pub(super) fn fail_sync(&mut self, n: u64, kind: ErrorKind) {
        self.one_sync = Some((self.syncs + n, kind));
    }

    pub(super) fn fail_operations(&mut self, some: Range<u64>, kind: ErrorKind) {
        self.some = Some((self.operations + some.start..self.operations + some.end, kind));
    }

    pub(super) fn fail_all_after(&mut self, n: u64, kind: ErrorKind) {
        self.after = Some((self.operations + n, kind));
    }

    pub(super) fn fail_opens(&mut self, end: &str, kind: ErrorKind) {
        self.opens = Some((end.to_owned(), kind));
    }

    pub(super) fn fail_links(&mut self, kind: ErrorKind) {
        self.links = Some(kind);
    }

    pub(super) fn fail_looks(&mut self, one_in: u32, kind: ErrorKind) {
        self.looks = Some((one_in, kind));
    }

    pub(super) fn fail_changes(&mut self, kind: ErrorKind) {
        self.changes = Some(kind);
    }

    pub(super) fn shorten_read(&mut self, n: u64) {
        self.short_read = Some(self.reads + n);
    }

    pub(super) fn crash_at_sync(&mut self, n: u64) {
        self.crash_at_sync = Some(self.syncs + n);
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.crashed
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Clears all faults. The counts go on.
    pub(super) fn clear(&mut self) {
        let Faults { operations, reads, syncs, .. } = *self;
        *self = Faults { operations, reads, syncs, ..Faults::default() };
    }
}

/// The error of every operation between a crash of the disk and its next start.
pub(super) fn crashed() -> io::Error {
    io::Error::other("the machine crashed")
}

fn injected(kind: ErrorKind) -> io::Error {
    io::Error::new(kind, "a fault asked for by the test")
}
