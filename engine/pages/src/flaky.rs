//! A source that refuses pages although it could give them, so that tests run every fault path. It does not know
//! what is read.
//!
//! It keeps the promise that all readers rely on: a page that was refused and then fetched is given until the step
//! is released, so every run of a step gets further. It is for one reader, so not `Sync`; it is `Send` if the
//! wrapped source is.

use crate::{PageAt, PageLender, PageRef, PageSource, Result, Stop};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

/// A source that wraps another one and faults more often.
pub struct Flaky<S> {
    source: S,
    state: RefCell<FlakyState>,
    refusals: Cell<u64>,
}

struct FlakyState {
    /// Pages that were refused since the last fetch.
    noted: Vec<FlakyPlace>,
    /// Pages that were fetched in this step, and are given until it is released.
    fetched: HashSet<FlakyPlace>,
    /// What is remembered from step to step, if anything.
    memory: Option<FlakyMemory>,
}

/// For each page remembered from step to step: how many more times it will be given.
struct FlakyMemory {
    touches: HashMap<FlakyPlace, u32>,
    random: SplitMix,
}

/// Id of the file and offset.
type FlakyPlace = (u64, u64);

fn place(at: PageAt<'_>) -> FlakyPlace {
    (at.file.id(), at.address.offset)
}

impl<S: PageSource> Flaky<S> {
    /// Refuses each page the first time it is asked for in a step.
    pub fn once(source: S) -> Self {
        Self::with_memory(source, None)
    }

    /// Refuses pages by a schedule that follows from `seed`. A page that is seen for the first time is refused in
    /// half of the cases, and a page that came is refused again after 5 to 10 touches.
    pub fn forgetful(source: S, seed: u64) -> Self {
        Self::with_memory(source, Some(FlakyMemory { touches: HashMap::new(), random: SplitMix(seed) }))
    }

    fn with_memory(source: S, memory: Option<FlakyMemory>) -> Self {
        let state = FlakyState { noted: Vec::new(), fetched: HashSet::new(), memory };
        Self { source, state: RefCell::new(state), refusals: Cell::new(0) }
    }

    /// How often a needed page was refused; peeks do not count. A test that relies on faults asserts that this is
    /// not 0.
    pub fn refusals(&self) -> u64 {
        self.refusals.get()
    }

    /// The source inside.
    pub fn inner(&self) -> &S {
        &self.source
    }
}

impl FlakyState {
    fn refuses(&mut self, place: FlakyPlace) -> bool {
        if self.fetched.contains(&place) {
            return false;
        }
        let Some(memory) = &mut self.memory else { return true };
        match memory.touches.get_mut(&place) {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None if memory.random.next().is_multiple_of(2) => true,
            None => {
                memory.remember(place);
                false
            }
        }
    }
}

impl FlakyMemory {
    fn remember(&mut self, place: FlakyPlace) {
        let touches = 5 + (self.random.next() % 6) as u32;
        self.touches.insert(place, touches);
    }
}

impl<S: PageSource> Flaky<S> {
    fn unless_refused(&self, at: PageAt<'_>, page: Option<PageRef>) -> Option<PageRef> {
        let page = page?;
        let refused = self.state.borrow_mut().refuses(place(at));
        (!refused).then_some(page)
    }
}

impl<S: PageSource> PageLender for Flaky<S> {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        let state = &mut *self.state.borrow_mut();
        // Ask the wrapped source first. If it misses the page itself, it notes the page, and the next round fetches
        // it together with the pages that were refused here.
        match self.source.page(at) {
            Ok(_) if state.refuses(place(at)) => self.refusals.set(self.refusals.get() + 1),
            Err(Stop::Fault) => {}
            given_or_failed => return given_or_failed,
        }
        state.noted.push(place(at));
        Err(Stop::Fault)
    }

    fn peek(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.unless_refused(at, self.source.peek(at))
    }

    fn release(&self) {
        let state = &mut *self.state.borrow_mut();
        state.noted.clear();
        state.fetched.clear();
        self.source.release();
    }

    crate::pass_on!(source: ahead, ahead_if_spare, take_read, excerpt, note_part);
}

impl<S: PageSource> PageSource for Flaky<S> {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.unless_refused(at, self.source.glance(at))
    }

    fn fetch(&self) -> Result<()> {
        self.source.fetch()?;
        let state = &mut *self.state.borrow_mut();
        for place in state.noted.drain(..) {
            state.fetched.insert(place);
            if let Some(memory) = &mut state.memory {
                memory.remember(place);
            }
        }
        Ok(())
    }

    crate::pass_on!(source: ahead_bytes);
}

/// Steele, Lea and Flood's SplitMix64.
pub(crate) struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests;
