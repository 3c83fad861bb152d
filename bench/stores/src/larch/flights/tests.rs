use super::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A job's key, its waker, and whether it is done.
type Under = (Vec<u8>, Option<Waker>, bool);

/// Jobs that end only when the test says so.
#[derive(Default)]
struct Told {
    done: RefCell<Vec<Under>>,
    polls: Cell<u32>,
}

impl Told {
    fn finish(&self, key: &[u8]) {
        let mut done = self.done.borrow_mut();
        let (_, waker, is_done) = done.iter_mut().find(|(name, ..)| name == key).expect("it is under way");
        *is_done = true;
        waker.take().expect("it was polled").wake();
    }
}

fn session(depth: usize, told: &Rc<Told>) -> impl Flights {
    let told = told.clone();
    Session::new(depth, Clock::start(), move |job: Box<Job>| {
        let told = told.clone();
        async move {
            let mut job = job;
            told.done.borrow_mut().push((job.key.clone(), None, false));
            std::future::poll_fn(|context| {
                told.polls.set(told.polls.get() + 1);
                let mut done = told.done.borrow_mut();
                let at = done.iter().position(|(key, ..)| *key == job.key).expect("pushed above");
                if done[at].2 {
                    done.remove(at);
                    return Poll::Ready(());
                }
                done[at].1 = Some(context.waker().clone());
                Poll::Pending
            })
            .await;
            job.result = Some(Ok(Outcome::Ok));
            job
        }
    })
}

fn read(key: &[u8]) -> Request<'_> {
    Request::Read { key, fields: Fields::All }
}

#[test]
fn requests_are_answered_in_the_order_in_which_they_are_done_and_polled_only_when_woken() {
    let told = Rc::new(Told::default());
    let mut session = session(3, &told);
    assert_eq!(session.depth(), 3);
    for (slot, key) in [(0, b"a"), (1, b"b"), (2, b"c")] {
        session.start(slot, &read(key)).expect("it takes all");
    }
    let mut wait = |until| {
        let mut slots = Vec::new();
        session.wait(until, &mut |served| slots.push(served.slot)).expect("it is not lost");
        slots
    };
    assert!(wait(Some(0)).is_empty());
    assert_eq!(told.polls.get(), 3);
    told.finish(b"c");
    told.finish(b"a");
    assert_eq!(wait(None), [2, 0]);
    assert!(wait(Some(0)).is_empty());
    assert_eq!(told.polls.get(), 5, "b was not woken");
    told.finish(b"b");
    assert_eq!(wait(None), [1]);
    assert!(wait(None).is_empty(), "none is under way");
}

#[test]
fn another_thread_wakes_one_that_waits() {
    let told = Rc::new(Told::default());
    let mut session = session(1, &told);
    for _ in 0..100 {
        session.start(0, &read(b"a")).expect("it takes one");
        session.wait(Some(0), &mut |_| panic!("nothing is done")).expect("it is not lost");
        let waker = {
            let mut done = told.done.borrow_mut();
            done[0].2 = true;
            done[0].1.take().expect("it was polled")
        };
        let other = std::thread::spawn(move || waker.wake());
        let mut count = 0;
        session.wait(None, &mut |_| count += 1).expect("it is not lost");
        assert_eq!(count, 1);
        other.join().expect("it does not panic");
    }
}
