//! What a lendable value promises: a borrowed value is whole until it is given back, and then it goes.
#![allow(clippy::disallowed_methods, reason = "these tests are about threads that meet at a value")]

use super::*;
use crate::sync::model::{model, thread};

fn lendable(value: u64) -> (Arc<Lendable<Box<u64>>>, std::sync::Weak<Box<u64>>) {
    let value = Arc::new(Box::new(value));
    let weak = Arc::downgrade(&value);
    (Arc::new(Lendable::new(value, Hazards::new())), weak)
}

#[test]
fn a_reader_sees_the_old_value_or_the_new_one() {
    model(|| {
        let (lendable, old) = lendable(1);
        let reader = {
            let lendable = Arc::clone(&lendable);
            thread::spawn(move || {
                let lease = lendable.hazards.lease();
                let value = lendable.borrow(&lease).map(|value| **value);
                assert!(matches!(value, None | Some(1 | 2)), "{value:?}");
            })
        };
        drop(lendable.replace(Arc::new(Box::new(2))));
        reader.join().expect("no panic");
        lendable.free_unused();
        assert!(old.upgrade().is_none(), "nobody has borrowed it");
        let lease = lendable.hazards.lease();
        assert_eq!(lendable.borrow(&lease).map(|value| **value), Some(2));
    });
}

#[test]
fn a_borrowed_value_outlives_its_replacement_and_no_more() {
    model(|| {
        let (lendable, old) = lendable(1);
        let lease = lendable.hazards.lease();
        let borrowed = lendable.borrow(&lease).expect("nobody replaces it");
        assert!(lendable.replace(Arc::new(Box::new(2))).is_empty(), "the first one is borrowed");
        assert_eq!(lendable.replace(Arc::new(Box::new(3))).len(), 1);
        assert_eq!((**borrowed, old.strong_count()), (1, 1));
        assert_eq!(lendable.kept.lock().len(), 2, "the first one and the third");
        drop(borrowed);
        assert_eq!((old.strong_count(), lendable.kept.lock().len()), (0, 1));
    });
}
