//! Counts what the background scrub has read, and remembers the damage that it found. It does not know how the scrub
//! reads.
//!
//! Thread safe.

use super::problem::Problem;
use crate::base::event::Event;
use crate::core::environment::Environment;
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};

/// Most problems that are remembered. All of them are counted.
const MAX_PROBLEMS: usize = 64;

/// What the scrub of a database found.
#[derive(Debug, Default)]
pub struct Damage {
    problems: Mutex<Vec<Problem>>,
    /// Bytes of pages that were read and verified.
    pub bytes: AtomicU64,
    /// Completed rounds through all files.
    pub rounds: AtomicU64,
    /// Pages that are damaged or could not be read.
    pub damaged_pages: AtomicU64,
}

impl Damage {
    /// The first problems that the scrub has found since the database was opened, at most 64.
    pub fn problems(&self) -> Vec<Problem> {
        self.problems.lock().clone()
    }

    /// Counts a problem and reports it.
    pub fn add(&self, env: &Environment, problem: Problem) {
        self.damaged_pages.fetch_add(1, Ordering::Relaxed);
        env.report(|| Event::Damaged { table: problem.table.clone(), error: problem.error.to_string() });
        let mut problems = self.problems.lock();
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
        }
    }
}
