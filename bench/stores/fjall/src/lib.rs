//! fjall.
