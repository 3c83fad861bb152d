//! Compactions by other processes. The writer offers a compaction, a worker merges the files and says what it wrote,
//! and the writer installs that. Only the writer changes the manifest.
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
//! They exchange nothing but files in the directory `workers`, see `docs/format/workers.md`. The numbers of the new
//! files are taken by the writer when it offers the job, and no other job gets them. So a file that a worker writes
//! after the writer has taken its job back never has the name of another file. No manifest names such a file, and it
//! is removed.
//!
//! A worker may die at any point: then its beats end, and the writer takes the job back and merges itself, or offers
//! the merge again. If the writer dies, its jobs are void: the next writer has another epoch, and the epoch is part
//! of the name of a job.

pub mod beat;
pub mod worker;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
