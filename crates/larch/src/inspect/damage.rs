//! What the background scrub has read and found. Knows nothing of how it reads.

use super::problem::Problem;
use crate::core::environment::Environment;
use crate::event::Event;
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};

/// Damage that is kept to be listed; all of it is counted.
const MAX_PROBLEMS: usize = 64;

/// What the scrub of a database found.
#[derive(Debug, Default)]
pub struct Damage {
    problems: Mutex<Vec<Problem>>,
    /// Bytes that were read and compared.
    pub bytes: AtomicU64,
    /// Rounds through all files that were completed.
    pub rounds: AtomicU64,
    /// Pages that were not what was written, or could not be read.
    pub damaged_pages: AtomicU64,
}

impl Damage {
    /// The first problems that were found since the database was opened.
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
