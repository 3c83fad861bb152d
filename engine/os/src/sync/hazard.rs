//! Hazard pointers: a reader uses an object that others may take out of use, without writing to memory that other
//! threads write to (Michael, *Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects*, 2004). This module
//! does not know what the objects are.
//!
//! * A reader finds the address of an object, [protects](Lease::protect) the address, and then checks that the object
//!   is still in use. If it is, the object stays as it is until the reader drops the [`Hazard`].
//! * A writer takes the object out of use, so that a later check by a reader fails. Then it asks whether the address is
//!   [protected](Hazards::are_on). If it is not, no reader uses the object, now or later. If it is, the writer has to
//!   leave the object alone, and may ask again later.
//! * Both have a sequentially consistent fence between their two steps. So if both run at the same time, the reader
//!   sees that the object is out of use, or the writer sees the hazard.
//!
//! A reader that sleeps keeps only the objects that it protects, which are at most [`SLOTS`] for each thread. It
//! never waits, and no thread waits for it.

use super::Arc;
use super::atomic::{AtomicBool, AtomicPtr, Ordering, fence};
use std::marker::PhantomData;
use std::ptr;
#[cfg(not(any(loom, shuttle)))]
use std::sync::OnceLock;

/// How many objects a thread can protect at the same time.
pub const SLOTS: usize = 7;

/// The hazards of all threads.
#[derive(Debug)]
pub struct Hazards {
    /// The records of all threads that ever had a lease. They are linked, and none is removed before the value is
    /// dropped.
    first: AtomicPtr<Record>,
}

/// What one thread protects. Other threads only read it. It has two cache lines of its own, because processors fetch
/// lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Record {
    slots: [AtomicPtr<()>; SLOTS],
    /// How many records were made before.
    number: usize,
    /// Whether a thread has leased the record.
    is_leased: AtomicBool,
    /// The record that was made before.
    next: *mut Record,
}

// SAFETY: `next` is written before the record can be reached by other threads; everything else is atomic.
unsafe impl Send for Record {}
// SAFETY: as above.
unsafe impl Sync for Record {}

/// The right of one thread to protect objects.
#[derive(Debug)]
pub struct Lease {
    record: ptr::NonNull<Record>,
    /// Keeps the record.
    hazards: Arc<Hazards>,
}

/// Protects one object. Only the thread that made it may drop it, because only this thread uses the slot.
#[derive(Debug)]
pub struct Hazard<'l> {
    slot: &'l AtomicPtr<()>,
    _not_send: PhantomData<*mut ()>,
}

impl Hazards {
    /// No hazards.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { first: AtomicPtr::new(ptr::null_mut()) })
    }

    /// The hazards that [`Lease::with`] uses, one for the process. In a model of schedules they are new ones at each
    /// call, because nothing may outlive the model.
    pub fn shared() -> Arc<Self> {
        #[cfg(not(any(loom, shuttle)))]
        {
            static SHARED: OnceLock<Arc<Hazards>> = OnceLock::new();
            Arc::clone(SHARED.get_or_init(Self::new))
        }
        #[cfg(any(loom, shuttle))]
        Self::new()
    }

    /// A lease for the calling thread, which must not hand it to another thread.
    pub fn lease(self: &Arc<Self>) -> Lease {
        let record = self.records().find(|record| !record.is_leased.swap(true, Ordering::AcqRel));
        Lease { record: record.map_or_else(|| self.add(), ptr::NonNull::from), hazards: Arc::clone(self) }
    }

    fn add(&self) -> ptr::NonNull<Record> {
        let slots = std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
        let mut first = self.first.load(Ordering::Acquire);
        let fresh = Record { slots, number: Self::number_after(first), is_leased: AtomicBool::new(true), next: first };
        let record = Box::into_raw(Box::new(fresh));
        loop {
            match self.first.compare_exchange(first, record, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return ptr::NonNull::new(record).expect("a box has an address"),
                Err(changed) => {
                    first = changed;
                    // SAFETY: the record was made here and is not linked yet, so no other thread can reach it.
                    let record = unsafe { &mut *record };
                    (record.next, record.number) = (first, Self::number_after(first));
                }
            }
        }
    }

    fn number_after(first: *mut Record) -> usize {
        // SAFETY: a linked record is not freed before the `Hazards` are dropped.
        unsafe { first.as_ref() }.map_or(0, |first| first.number + 1)
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        let mut next = self.first.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: a linked record is not freed before `self` is dropped.
            let record = unsafe { next.as_ref() }?;
            next = record.next;
            Some(record)
        })
    }

    /// Whether some thread protects the object at `address`. The caller has taken the object out of use before, and
    /// no other thread brings it back. After `false`, no reader uses the object any more, and what readers have done
    /// with it happened before.
    pub fn are_on<T>(&self, address: *const T) -> bool {
        fence(Ordering::SeqCst);
        let is_on = |slot: &AtomicPtr<()>| ptr::addr_eq(slot.load(Ordering::Acquire), address);
        self.records().any(|record| record.slots.iter().any(is_on))
    }
}

impl Drop for Hazards {
    fn drop(&mut self) {
        let mut next = self.first.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: each record came from a box. No lease exists, because a lease keeps the `Hazards`; and no hazard
            // exists, because a hazard borrows a lease. So no thread reaches the record.
            let record = unsafe { Box::from_raw(next) };
            next = record.next;
        }
    }
}

#[cfg(not(any(loom, shuttle)))]
thread_local! {
    static LEASE: Lease = Hazards::shared().lease();
}

impl Lease {
    /// Calls `read` with the lease of this thread on [`Hazards::shared`]. `None` while the thread ends, and in a model
    /// of schedules.
    #[inline]
    pub fn with<T>(read: impl FnOnce(&Lease) -> T) -> Option<T> {
        #[cfg(not(any(loom, shuttle)))]
        return LEASE.try_with(read).ok();
        #[cfg(any(loom, shuttle))]
        return {
            drop(read);
            None
        };
    }

    /// Whether the lease is on `hazards`.
    #[inline]
    pub fn is_on(&self, hazards: &Arc<Hazards>) -> bool {
        Arc::ptr_eq(&self.hazards, hazards)
    }

    /// A number that no other lease on the same hazards has at the same time. The first leases have small ones.
    #[inline]
    pub fn number(&self) -> usize {
        self.record().number
    }

    #[inline]
    fn record(&self) -> &Record {
        // SAFETY: the record is linked in the `Hazards` that this lease keeps.
        unsafe { self.record.as_ref() }
    }

    /// Protects the object at `address`; `None` if all slots of the thread are in use. The caller then has to check
    /// that the object is still in use: only then may it use the object.
    #[inline]
    pub fn protect<T>(&self, address: *const T) -> Option<Hazard<'_>> {
        // Only this thread writes these slots.
        let slot = self.record().slots.iter().find(|slot| slot.load(Ordering::Relaxed).is_null())?;
        // The slot may have protected another object before. A thread that reads the new address may free the old
        // object. The release makes this thread's use of the old object happen before that.
        slot.store(address.cast_mut().cast(), Ordering::Release);
        fence(Ordering::SeqCst);
        Some(Hazard { slot, _not_send: PhantomData })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.record().is_leased.store(false, Ordering::Release);
    }
}

impl Drop for Hazard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.store(ptr::null_mut(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
