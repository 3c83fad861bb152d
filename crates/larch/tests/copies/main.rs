//! Copies of a database: checkpoints, backups, and what is restored from these.

mod backup;
mod checkpoint;
mod rows;

use larch::Database;
