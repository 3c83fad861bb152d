//! Compactions by other processes. The writer offers a compaction, a worker in another process merges the files and
//! reports the new files that it has written, and the writer installs them. Only the writer changes the manifest.
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
//! The writer and the workers exchange only files in the directory `workers`, see `docs/format/workers.md`. With
//! each offer, the writer reserves the numbers of the new files, which no other job gets. So a worker that still
//! writes a file after the writer has taken the job back never collides with another file; no manifest names that
//! file, and it is removed.
//!
//! A worker may die at any point. Its beats then stop, and the writer takes the job back and either does the merge
//! itself or offers it again. If the writer dies, nobody uses the results of its jobs: the next writer has another
//! epoch, which is part of the name of a job.

pub mod beat;
pub mod worker;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
