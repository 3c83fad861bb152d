//! Lets a read-only database follow the process that writes to it. A follower shows new files, and, if the program
//! wants this, also the commits in the logs.
//!
//! ```text
//!   writer     log ── commits ──▶ LogTail ──▶ memory sets ─┐
//!              manifest ─ edits ─▶ ManifestTail ─▶ files ──┴─▶ view of the follower
//!              removes a file  ◀── looks at ── lease: the oldest file set that the follower shows
//! ```
//!
//! The writer and the follower communicate only through files in the directory `followers`, see
//! `docs/format/followers.md`.

pub mod jobs;
pub mod replaced;
pub mod steps;
