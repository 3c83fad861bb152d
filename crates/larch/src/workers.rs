//! Compactions that other processes do. The writer offers a compaction. A worker in another process merges the
//! files and says which new files it has written. The writer installs the new files. Only the writer changes the
//! manifest.
//!
//! ```text
//!   writer                                    worker
//!   sees the beats of a worker                writes a beat every half second
//!   writes 00000052-9.job, keeps the inputs
//!                                             creates 00000052-9.owner, reads the manifest
//!                                             merges into 00000052-9.sst, 00000053-9.sst …, durably
//!   reads the result, checks it             ◀ writes 00000052-9.result
//!   one record in the manifest: the new files for the inputs
//!   removes job and result; two minutes later, the owner file
//! ```
//!
//! The writer and the workers only exchange files in the directory `workers`, see `docs/format/workers.md`. When
//! the writer offers a job, it reserves the numbers for the new files, and no other job gets these numbers. After
//! the writer has taken a job back, the worker may still write a file for it. Because of its number, such a file
//! never has the name of another file. No manifest names it, so it is removed.
//!
//! A worker may die at any point. After that, no new beat comes, and the writer takes the job back. The writer
//! then does the merge itself, or offers it again. If the writer dies, nobody uses the results of its jobs: the
//! next writer has another epoch, and the name of a job contains the epoch.

pub mod beat;
pub mod worker;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
