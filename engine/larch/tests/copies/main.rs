//! Copies of a database: checkpoints, backups, and databases that are restored from backups.

mod at;
mod backup;
mod checkpoint;
mod rows;

use larch::Database;
