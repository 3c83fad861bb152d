//! What hazards promise: an object that a reader protects and finds in use is not freed under it.
#![allow(clippy::disallowed_methods, reason = "these tests are about threads that meet at an object")]

use super::*;
use crate::sync::model::{model, thread};
use std::cell::UnsafeCell;

const USED: usize = 7;
const FREED: usize = 8;

/// An object that is in use until `current` is null. Freeing it is writing [`FREED`]. It is not atomic, so Miri tells if
/// the use of a reader and the writing are not in order.
struct Shared {
    hazards: Arc<Hazards>,
    current: AtomicPtr<UnsafeCell<usize>>,
    object: UnsafeCell<usize>,
}

// SAFETY: the object is read under a hazard only, and written only when no hazard protects it.
unsafe impl Sync for Shared {}
// SAFETY: everything in it is Send.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        let (current, object) = (AtomicPtr::new(ptr::null_mut()), UnsafeCell::new(USED));
        let shared = Arc::new(Self { hazards: Hazards::new(), current, object });
        shared.current.store(ptr::from_ref(&shared.object).cast_mut(), Ordering::Release);
        shared
    }

    /// Reads the object if it is in use.
    fn read(&self) -> Option<usize> {
        let lease = self.hazards.lease();
        let address = self.current.load(Ordering::Acquire);
        let _hazard = lease.protect(address)?;
        let is_in_use = !address.is_null() && self.current.load(Ordering::Acquire) == address;
        // SAFETY: the object is protected, and after that it was in use.
        is_in_use.then(|| unsafe { *self.object.get() })
    }

    /// Reads the object if it is in use, and then protects another one in the same slot.
    fn read_and_go_on(&self) -> Option<usize> {
        let read = self.read();
        let lease = self.hazards.lease();
        let other = 0_u64;
        drop(lease.protect(&other));
        read
    }

    /// Takes the object out of use, and frees it unless a reader uses it.
    fn free(&self) -> bool {
        self.current.store(ptr::null_mut(), Ordering::Release);
        let is_free = !self.hazards.are_on(&self.object);
        if is_free {
            // SAFETY: the object was taken out of use, and after that no thread protected it.
            unsafe { *self.object.get() = FREED };
        }
        is_free
    }
}

#[test]
fn what_a_reader_protects_is_not_freed_under_it() {
    model(|| {
        let shared = Shared::new();
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.read_and_go_on())
        };
        let freed = shared.free();
        let read = reader.join().expect("no panic");
        assert!(matches!(read, None | Some(USED)), "{read:?}");
        assert!(freed || shared.free(), "the reader is gone");
    });
}

#[test]
fn two_threads_have_slots_of_their_own() {
    model(|| {
        let shared = Shared::new();
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.read())
        };
        let lease = shared.hazards.lease();
        let hazard = lease.protect(&shared.object);
        assert_eq!(other.join().expect("no panic"), Some(USED));
        assert!(shared.hazards.are_on(&shared.object));
        drop(hazard);
        assert!(!shared.hazards.are_on(&shared.object));
    });
}

#[cfg(not(any(loom, shuttle)))]
#[test]
fn a_thread_protects_a_few_objects_and_its_record_is_used_again() {
    let hazards = Hazards::new();
    let objects = [0_u64; SLOTS + 1];
    let lease = hazards.lease();
    let mut held: Vec<_> = objects[..SLOTS].iter().map(|object| lease.protect(object).expect("a free slot")).collect();
    assert!(lease.protect(&objects[SLOTS]).is_none());
    held.remove(3);
    let again = lease.protect(&objects[SLOTS]).expect("a free slot");
    let protected: Vec<bool> = objects.iter().map(|object| hazards.are_on(object)).collect();
    let expected: Vec<bool> = (0..=SLOTS).map(|i| i != 3).collect();
    assert_eq!(protected, expected);
    drop((held, again));
    let record = lease.record;
    drop(lease);
    assert_eq!(hazards.lease().record, record);
    let both = (hazards.lease(), hazards.lease());
    assert_ne!(both.0.record, both.1.record);
    assert_eq!(Lease::with(|lease| lease.protect(&objects).is_some()), Some(true));
}
