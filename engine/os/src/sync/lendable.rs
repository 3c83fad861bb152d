//! A value that is replaced now and then, and that readers borrow without writing to memory that other threads write
//! to. This module does not know what the value is.
//!
//! A reader protects the address of the current value with a [hazard](super::hazard). A value that was replaced is
//! dropped at once if no reader has borrowed it, and otherwise by the reader that gives it back, when the value is
//! replaced again, or when the owner asks for it.

use super::atomic::{AtomicPtr, Ordering};
use super::hazard::{Hazard, Hazards, Lease};
use super::{Arc, Mutex};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

/// A value that readers borrow, and that may be replaced meanwhile.
pub struct Lendable<T> {
    /// The address of the last value in `kept`.
    current: AtomicPtr<T>,
    /// The current value, which is the last one, and older ones that may still be borrowed.
    kept: Mutex<Vec<Arc<T>>>,
    hazards: Arc<Hazards>,
}

/// A borrowed value. It stays on the thread that has borrowed it.
pub struct Borrowed<'l, T> {
    /// Not a reference, because the value may go while this one is dropped.
    value: NonNull<T>,
    owner: &'l Lendable<T>,
    /// `None` once the value was given back.
    hazard: Option<Hazard<'l>>,
}

impl<T> Lendable<T> {
    /// Lends `value` to threads with leases on `hazards`.
    pub fn new(value: Arc<T>, hazards: Arc<Hazards>) -> Self {
        Self { current: AtomicPtr::new(Arc::as_ptr(&value).cast_mut()), kept: Mutex::new(vec![value]), hazards }
    }

    /// Replaces the value. Readers that have borrowed the old one keep it until they give it back. Returns the older
    /// values that no reader has borrowed. The caller drops them after it has released its locks.
    #[must_use = "dropping what is returned may take long and call foreign code, so hold no lock then"]
    pub fn replace(&self, value: Arc<T>) -> Vec<Arc<T>> {
        let mut kept = self.kept.lock();
        self.current.store(Arc::as_ptr(&value).cast_mut(), Ordering::Release);
        kept.push(value);
        self.take_unused(&mut kept)
    }

    /// Drops the older values that no reader has borrowed. A reader that gives back an older value does the same, but
    /// it may miss the value if another thread replaces it at the same moment.
    pub fn free_unused(&self) {
        let dropped = self.take_unused(&mut self.kept.lock());
        drop(dropped);
    }

    /// Takes the older values out that no reader has borrowed.
    fn take_unused(&self, kept: &mut Vec<Arc<T>>) -> Vec<Arc<T>> {
        let older = kept.len() - 1;
        kept.extract_if(..older, |value| !self.hazards.are_on(Arc::as_ptr(value))).collect()
    }

    /// Borrows the current value. `lease` has to be on the hazards of this value. `None` if the value is replaced at
    /// this moment, or if the thread has no free slot.
    #[inline]
    pub fn borrow<'l>(&'l self, lease: &'l Lease) -> Option<Borrowed<'l, T>> {
        assert!(lease.is_on(&self.hazards), "a lease on other hazards protects nothing here");
        let address = self.current.load(Ordering::Acquire);
        let hazard = lease.protect(address)?;
        let current = self.current.load(Ordering::Acquire);
        // The address may have been used again meanwhile, so only the pointer that was loaded last is good.
        let value = NonNull::new(current).filter(|value| value.as_ptr() == address)?;
        Some(Borrowed { value, owner: self, hazard: Some(hazard) })
    }
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value is in `kept`, because it was current after its address was protected. It leaves `kept` only
        // after it was replaced, and after that only if it is not protected.
        unsafe { self.value.as_ref() }
    }
}

impl<T> Drop for Borrowed<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.hazard = None;
        // Who gives back the current value has nothing to free. The address is only compared.
        if self.owner.current.load(Ordering::Relaxed) != self.value.as_ptr()
            && let Some(mut kept) = self.owner.kept.try_lock()
        {
            let dropped = self.owner.take_unused(&mut kept);
            drop(kept);
            drop(dropped);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Lendable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lendable").field(&self.kept.lock().last()).finish()
    }
}

#[cfg(test)]
mod tests;
