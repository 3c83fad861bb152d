//! Opens databases on disks that fail.

mod full_disk;
mod read_only;
