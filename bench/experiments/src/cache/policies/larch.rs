//! Larch's own policy, called in the way the cache calls it.

use super::bytes_of;
use crate::cache::policy;
use crate::cache::recorded::Page;
use ::pages::policy::{Policy, PolicyPlace, Tuning, Use};

/// The most pages to look at for one eviction, as in the cache.
const LOOK: usize = 64;

pub(super) struct Larch<'p> {
    pages: &'p [Page],
    budget: u64,
    policy: Policy<u32>,
    places: Vec<Option<PolicyPlace>>,
    uses: Vec<u8>,
}

impl<'p> Larch<'p> {
    pub fn new(pages: &'p [Page], budget: u64, tuning: Tuning) -> Self {
        let (places, uses) = (vec![None; pages.len()], vec![0; pages.len()]);
        Self { pages, budget, policy: Policy::new(tuning), places, uses }
    }
}

impl policy::Policy for Larch<'_> {
    fn has(&self, page: u32) -> bool {
        self.places[page as usize].is_some()
    }

    fn hit(&mut self, page: u32) {
        let uses = &mut self.uses[page as usize];
        *uses = (*uses + 1).min(3);
    }

    fn admit(&mut self, page: u32, is_needed: bool) {
        let bytes = bytes_of(self.pages, page);
        if bytes > self.budget {
            return;
        }
        while self.policy.bytes() + bytes > self.budget {
            let uses = &mut self.uses;
            let gone = self.policy.evict(LOOK, |page, _| Use::Times(std::mem::take(&mut uses[page as usize])));
            let (gone, _) = gone.expect("nothing is pinned");
            self.places[gone as usize] = None;
        }
        let Page { key, class, .. } = self.pages[page as usize];
        self.places[page as usize] = Some(self.policy.admit(page, key, class, bytes, is_needed));
        self.uses[page as usize] = 0;
    }

    fn remove(&mut self, page: u32) {
        if let Some(place) = self.places[page as usize].take() {
            self.policy.remove(place);
        }
    }

    fn bytes(&self) -> u64 {
        self.policy.bytes()
    }

    fn looks(&self) -> (u64, u64) {
        let counts = self.policy.counts();
        (counts.looks, counts.evicted)
    }
}
