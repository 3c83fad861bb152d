//! The hashes of parts that left once with their pages. A part that comes once more is worth an excerpt.

use crate::budget::Charge;

/// Hashes of parts. What it takes is paid by charges of evicted pages.
#[derive(Default)]
pub struct Seen {
    /// A power of two, about as many as there is room for excerpts. Empty until it is paid.
    hashes: Vec<u32>,
    /// Pay for the hashes, or for those that there will be.
    charges: Vec<Charge>,
    /// The usual length of an excerpt in bytes, times 16: a moving average.
    length: u64,
}

impl Seen {
    /// Notes a part whose excerpt would have `bytes` bytes. Returns whether the part was noted before. Later parts
    /// may have taken its place; then this is `false`.
    pub fn has(&mut self, hash: u32, bytes: usize) -> bool {
        let bytes = bytes as u64;
        self.length = if self.length == 0 { 16 * bytes } else { self.length - self.length / 16 + bytes };
        let last = self.hashes.len().wrapping_sub(1);
        let spread = hash.wrapping_mul(0x9E37_79B1) >> 4;
        let Some(seen) = self.hashes.get_mut(spread as usize & last) else { return false };
        std::mem::replace(seen, hash) == hash
    }

    /// How many hashes there should be for a budget of `budget_bytes`.
    fn wanted(&self, budget_bytes: u64) -> usize {
        let excerpts = (budget_bytes.saturating_mul(16) / self.length.max(16 * 64)).clamp(1, 1 << 27);
        1 << excerpts.ilog2()
    }

    /// Whether another charge is needed to pay for the hashes.
    pub fn needs_charge(&mut self, budget_bytes: u64) -> bool {
        let wanted = self.wanted(budget_bytes);
        // The length is an average and changes a little all the time.
        if wanted <= 2 * self.hashes.len() {
            return false;
        }
        let is_paid = self.paid_bytes() >= (wanted * size_of::<u32>()) as u64;
        if is_paid {
            self.hashes = vec![0; wanted];
        }
        !is_paid
    }

    /// Takes a charge that pays for hashes.
    pub fn pay(&mut self, charge: Charge) {
        self.charges.push(charge);
    }

    /// The bytes that were paid.
    pub fn paid_bytes(&self) -> u64 {
        self.charges.iter().map(Charge::bytes).sum()
    }

    /// Takes everything out if it is more than a budget of `budget_bytes` has use for. The caller drops it when it has
    /// released its locks, because that wakes tasks.
    pub fn limit(&mut self, budget_bytes: u64) -> Option<Self> {
        let is_too_much = self.hashes.len() > 2 * self.wanted(budget_bytes) || budget_bytes / 8 < self.paid_bytes();
        is_too_much.then(|| std::mem::replace(self, Self { length: self.length, ..Self::default() }))
    }
}
