//! A cache of answers that are dear to compute: each is kept for a while, and is gone once its time is over. Nothing
//! has to be running for that. The answers survive a restart, and what has expired takes no space for long: compactions
//! drop it.
//!
//! ```text
//! cargo run -p larch-db --example cache
//! ```

use larch::{Database, Table};
use std::error::Error;
use std::time::Duration;

/// Answers by question, each for a while.
struct Cache {
    answers: Table,
    /// How long an answer is kept.
    time: Duration,
    hits: u32,
    misses: u32,
}

impl Cache {
    fn new(db: &Database, time: Duration) -> larch::Result<Self> {
        Ok(Self { answers: db.table("answers")?, time, hits: 0, misses: 0 })
    }

    /// The answer that is kept, or else a new one, which is kept from now on.
    fn answer(&mut self, question: &str, compute: impl Fn(&str) -> String) -> larch::Result<String> {
        if let Some(answer) = self.answers.get(question)? {
            self.hits += 1;
            return Ok(String::from_utf8_lossy(&answer).into_owned());
        }
        self.misses += 1;
        let answer = compute(question);
        self.answers.insert_for(question, &answer, self.time)?;
        Ok(answer)
    }
}

/// Stands for something slow.
fn shout(question: &str) -> String {
    question.to_uppercase()
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let db = Database::open(&directory)?;
    let mut cache = Cache::new(&db, Duration::from_millis(50))?;
    for question in ["who", "what", "who", "who"] {
        println!("{question}: {}", cache.answer(question, shout)?);
    }
    println!("{} hits, {} misses", cache.hits, cache.misses);

    // The clock of the database says when an answer goes.
    for question in ["who", "what"] {
        let Some(until) = cache.answers.until(question)? else { continue };
        println!("{question} is gone in {} ms at most", until.saturating_sub(db.clock()).as_millis());
        while db.clock() < until {
            std::hint::spin_loop();
        }
    }
    assert!(cache.answers.get("who")?.is_none() && cache.answers.is_empty()?);
    println!("who: {}, computed again", cache.answer("who", shout)?);
    println!("{} hits, {} misses", cache.hits, cache.misses);

    // A compaction gives the space back at once. In the background, the database does so by itself.
    db.compact()?;
    println!("answers that are kept: {}", cache.answers.len()?);
    Ok(())
}
