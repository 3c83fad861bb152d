//! Compactions that other processes do. The writer offers a compaction. A worker merges the files and says which
//! files it wrote. The writer installs these. Only the writer changes the manifest.
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
//! Writer and workers exchange nothing but files in the directory `workers`, see `docs/format/workers.md`. When the
//! writer offers a job, it takes the numbers for the new files, and no other job gets these numbers. A worker may
//! still write a file after the writer has taken its job back. Such a file never has the name of another file. No
//! manifest names it, so it is removed.
//!
//! A worker may die at any point. Then its beats end, and the writer takes the job back. It does the merge itself,
//! or offers the merge again. If the writer dies, its jobs are void: the next writer has another epoch, and the
//! name of a job contains the epoch.

pub mod beat;
pub mod worker;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
