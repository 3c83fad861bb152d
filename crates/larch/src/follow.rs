//! A database opened read-only can follow the process that writes to it: it shows new files and, if asked, the
//! commits in the logs.
//!
//! ```text
//!   writer     log ── commits ──▶ LogTail ──▶ memory sets ─┐
//!              manifest ─ edits ─▶ ManifestTail ─▶ files ──┴─▶ view of the follower
//!              removes a file  ◀── looks at ── lease: the oldest file set that the follower shows
//! ```
//!
//! Writer and follower exchange nothing but files in the directory `followers`, see `docs/format/followers.md`.

pub mod jobs;
pub mod replaced;
pub mod steps;
