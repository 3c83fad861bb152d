//! Uses a table as a queue: producers append jobs, and workers take them from the front. No job is done twice or
//! lost.

use larch::{Database, Readable, Result, Table};

/// Appends `job` behind the last job in the queue.
fn push(db: &Database, jobs: &Table, job: &str) -> Result<u64> {
    db.transact(|tx| {
        let last = tx.last_key_value(jobs)?;
        let place = last.map_or(0, |(key, _)| number(&key) + 1);
        tx.insert(jobs, place.to_be_bytes(), job)?;
        Ok(place)
    })
}

/// Does the first job. One commit removes the job from the queue and writes its result.
fn work(db: &Database, jobs: &Table, results: &Table) -> Result<bool> {
    db.transact(|tx| {
        let Some((place, job)) = tx.first_key_value(jobs)? else { return Ok(false) };
        tx.remove(jobs, place)?;
        tx.insert(results, &job, job.to_ascii_uppercase())?;
        Ok(true)
    })
}

/// Does jobs until none is left, and returns how many it did.
fn work_on(db: &Database, jobs: &Table, results: &Table) -> Result<u32> {
    let mut done = 0;
    while work(db, jobs, results)? {
        done += 1;
    }
    Ok(done)
}

/// The number in a key. In the key, the highest byte of the number comes first. Therefore the order of the keys is
/// the order of the numbers.
fn number(key: &[u8]) -> u64 {
    key.try_into().map_or(0, u64::from_be_bytes)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let db = Database::open(&directory)?;
    let (jobs, results) = (db.table("jobs")?, db.table("results")?);

    let producers = ["red", "green", "blue"].map(|colour| {
        let (db, jobs) = (db.clone(), jobs.clone());
        smol::unblock(move || (0..20).try_for_each(|i| push(&db, &jobs, &format!("{colour} {i}")).map(drop)))
    });
    for producer in producers {
        smol::block_on(producer)?;
    }
    assert_eq!(jobs.iter().count(), 60);
    let (place, first) = jobs.first_key_value()?.expect("nobody has worked yet");
    println!("job {} is first: {}", number(&place), String::from_utf8_lossy(&first));

    // `pop_first` removes and returns the first row of the queue without a transaction. Two callers never get the
    // same row.
    let (_, taken) = jobs.pop_first()?.expect("it is there still");
    assert_eq!(taken, first);

    let workers = [(); 2].map(|()| {
        let (db, jobs, results) = (db.clone(), jobs.clone(), results.clone());
        smol::unblock(move || work_on(&db, &jobs, &results))
    });
    for worker in workers {
        println!("a worker did {} jobs", smol::block_on(worker)?);
    }
    assert!(jobs.is_empty()?);
    assert_eq!(results.iter().count(), 59);
    db.close()?;
    Ok(())
}
