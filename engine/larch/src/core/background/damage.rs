//! What the background scrub has read, and the damage that it has found. This module does not know how the scrub
//! reads.
//!
//! This module is thread-safe.

use super::problem::Problem;
use crate::base::event::Event;
use crate::core::environment::Environment;
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};

/// Only this many problems are remembered; further ones are just counted.
const MAX_PROBLEMS: usize = 64;

/// What the background scrub of a database has found.
#[derive(Debug, Default)]
pub struct Damage {
    problems: Mutex<Vec<Problem>>,
    /// Bytes of pages that the scrub has read and verified.
    pub bytes: AtomicU64,
    /// How often the scrub has read all files.
    pub rounds: AtomicU64,
    /// Pages that are damaged or could not be read.
    pub damaged_pages: AtomicU64,
}

impl Damage {
    /// The first 64 problems that the scrub has found since the database was opened.
    pub fn problems(&self) -> Vec<Problem> {
        self.problems.lock().clone()
    }

    /// Counts a problem, and reports it as an event.
    pub fn add(&self, env: &Environment, problem: Problem) {
        self.damaged_pages.fetch_add(1, Ordering::Relaxed);
        env.report(|| Event::Damaged { table: problem.table.clone(), error: problem.error.to_string() });
        let mut problems = self.problems.lock();
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
        }
    }
}
