//! What a simulated store promises its clients.

use super::{SimStore, StoreTrouble};
use crate::sim::SimClock;
use crate::store::Store;
use crate::sync::Arc;
use std::io::ErrorKind;
use std::time::Duration;

fn trouble() -> StoreTrouble {
    StoreTrouble {
        lost_responses: 100,
        lost_requests: 100,
        late: 100,
        duplicates: 100,
        throttled: 100,
        torn_uploads: 200,
        stale_answers: 300,
        damaged: 50,
        stale: Duration::from_secs(10),
        latency: Duration::from_millis(100),
    }
}

#[test]
fn of_several_that_put_one_name_one_succeeds_whatever_they_learn() {
    for seed in 0..300 {
        let clock = Arc::new(SimClock::new());
        let store = SimStore::new(seed, clock);
        store.set_trouble(trouble());
        let clients = [store.client(), store.client()];
        for round in 0..20 {
            let name = format!("log/{round}");
            let outcomes = clients.each_ref().map(|client| {
                let mine = format!("{:p}", Arc::as_ptr(client));
                (client.put_if_absent(&name, mine.as_bytes()), mine)
            });
            store.deliver_late();
            store.set_trouble(StoreTrouble::default());
            let found = clients[0].get(&name);
            store.set_trouble(trouble());
            for (outcome, mine) in outcomes {
                match outcome {
                    Ok(()) => {
                        assert_eq!(found.as_deref().ok(), Some(mine.as_bytes()), "seed {seed}, round {round}");
                    }
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        assert!(found.is_ok(), "seed {seed}, round {round}");
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

#[test]
fn old_answers_end_after_their_time() {
    for seed in 0..100 {
        let clock = Arc::new(SimClock::new());
        let store = SimStore::new(seed, clock.clone());
        let client = store.client();
        client.put_if_absent("a/1", b"1").expect("there is no trouble");
        clock.advance(Duration::from_secs(11));
        store.set_trouble(StoreTrouble {
            stale_answers: 1000,
            stale: Duration::from_secs(10),
            ..StoreTrouble::default()
        });
        assert_eq!(client.get("a/1").expect("it is old enough"), b"1");
        client.put_if_absent("a/2", b"2").expect("puts are never old");
        assert_eq!(client.put_if_absent("a/2", b"3").map_err(|error| error.kind()), Err(ErrorKind::AlreadyExists));
        clock.advance(Duration::from_secs(11));
        assert_eq!(client.list("a").expect("there is no other trouble").len(), 2, "seed {seed}");
    }
}

#[test]
fn a_client_that_crashes_leaves_no_part_of_an_upload() {
    let store = SimStore::new(1, Arc::new(SimClock::new()));
    let (client, other) = (store.client(), store.client());
    let mut upload = client.create("sst/1").expect("there is no trouble");
    upload.write(b"half").expect("there is no trouble");
    assert_eq!(other.len("sst/1").map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    client.crash();
    assert!(upload.finish().is_err() && client.get("sst/1").is_err());
    assert!(store.names().is_empty());
}
