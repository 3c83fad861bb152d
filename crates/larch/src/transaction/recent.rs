//! Which commits a running transaction can be compared with, after their rows went from memory to files. It does not know what a
//! transaction has read.
//!
//! While rows are in memory, memory has all that a transaction needs. When a flush takes them away and a transaction is running that
//! began before the newest of them, the keys of the newer rows stay here, without values, up to a share of the write buffer. The floor
//! is the newest version that nothing knows any more: a transaction that began before it cannot be compared.
//!
//! Thread safe.

use crate::memtable::row_memory::RowMemory;
use crate::memtable::set::MemSet;
use os::sync::atomic::{AtomicUsize, Ordering};
use os::sync::{Arc, Mutex};
use sst::Version;

/// Commits that are not in memory any more.
#[derive(Debug)]
pub struct Recent {
    /// How many transactions are running.
    running: AtomicUsize,
    most_bytes: u64,
    commits: Mutex<RecentCommits>,
}

#[derive(Debug, Default)]
struct RecentCommits {
    floor: Version,
    /// Oldest first.
    flushed: Vec<Arc<MemSet>>,
}

impl Recent {
    /// Nothing was flushed yet. Keys may take `most_bytes`.
    pub fn new(most_bytes: u64) -> Self {
        Self { running: AtomicUsize::new(0), most_bytes, commits: Mutex::default() }
    }

    /// A transaction begins. It is called before the transaction takes its version.
    pub fn enter(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
    }

    /// A transaction has ended.
    pub fn leave(&self) {
        if self.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.forget_all();
        }
    }

    /// Frees what is kept for transactions, since none is running.
    #[cold]
    fn forget_all(&self) {
        let mut commits = self.commits.lock();
        if self.running.load(Ordering::SeqCst) > 0 {
            return;
        }
        let gone = std::mem::take(&mut commits.flushed);
        if let Some(newest) = gone.iter().map(|set| set.newest()).max() {
            commits.floor = commits.floor.max(newest);
        }
        drop(commits);
        drop(gone);
    }

    /// How many transactions are running.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// `memory` is about to leave memory. No reader reads at a version before `oldest`.
    pub fn note_flush(&self, memory: &MemSet, oldest: Version) {
        let is_needed = self.running.load(Ordering::SeqCst) > 0 && oldest < memory.newest();
        let kept = if is_needed { keys_after(memory, oldest, self.most_bytes) } else { None };
        let mut commits = self.commits.lock();
        // The last transaction may have ended meanwhile, and taken along what was kept before.
        let kept = kept.filter(|_| self.running.load(Ordering::SeqCst) > 0);
        // After a flush that failed, the same memory comes again.
        let is_left = |set: &mut Arc<MemSet>| set.newest() <= oldest || set.log == memory.log;
        let mut gone: Vec<_> = commits.flushed.extract_if(.., is_left).collect();
        let forgotten = match kept {
            Some(kept) => {
                commits.flushed.push(Arc::new(kept));
                let bytes = |set: &Arc<MemSet>| set.bytes();
                while commits.flushed.iter().map(bytes).sum::<u64>() > self.most_bytes {
                    gone.push(commits.flushed.remove(0));
                }
                oldest
            }
            None => {
                gone.append(&mut commits.flushed);
                memory.newest()
            }
        };
        gone.retain(|set| set.log != memory.log);
        let forgotten = gone.iter().map(|set| set.newest()).fold(forgotten, Version::max);
        commits.floor = commits.floor.max(forgotten);
        drop(commits);
        drop(gone);
    }

    /// A commit of `version` changes tables without going through memory. No running transaction can be compared with it.
    pub fn note_change_of_tables(&self, version: Version) {
        let mut commits = self.commits.lock();
        commits.floor = commits.floor.max(version);
    }

    /// The floor, and the keys that were kept. A caller that has taken a view before it knows every commit after the floor.
    pub fn commits(&self) -> (Version, Vec<Arc<MemSet>>) {
        let commits = self.commits.lock();
        (commits.floor, commits.flushed.clone())
    }

    /// The memory of the keys that are kept, in bytes.
    pub fn bytes(&self) -> u64 {
        self.commits.lock().flushed.iter().map(|set| set.bytes()).sum()
    }
}

/// The keys of `memory` that were written after `oldest`; `None` if they take more than `most_bytes`.
fn keys_after(memory: &MemSet, oldest: Version, most_bytes: u64) -> Option<MemSet> {
    let kept = MemSet::new(memory.log, Arc::new(RowMemory::default()));
    for (table, memtable) in memory.all() {
        let mut rows = None;
        for row in memtable.all_versions().filter(|row| row.version() > oldest) {
            let rows = rows.get_or_insert_with(|| kept.table_or_new(table).batch());
            rows.apply(row.key(), row.version(), row.kind(), &[]);
            if kept.bytes() > most_bytes {
                return None;
            }
        }
        for erase in memtable.range_erases() {
            let end = erase.keys.end.as_deref().unwrap_or_default();
            for &version in erase.versions.iter().filter(|version| **version > oldest) {
                kept.note_range_erases(kept.table_or_new(table).remove_range(&erase.keys.start, end, version));
            }
        }
    }
    kept.note_commit(memory.newest(), 0);
    (kept.bytes() <= most_bytes).then_some(kept)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
