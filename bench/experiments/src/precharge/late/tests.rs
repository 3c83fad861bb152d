use super::*;
use kit::Scratch;
use os::{Access, Urgency};

/// Requests for the first `blocks` blocks of a file, one each.
fn requests(blocks: u8, told: &Sender<(u64, u8)>) -> Vec<ReadRequest> {
    let scratch = Scratch::new("late");
    let path = scratch.join("file");
    let content: Vec<u8> = (0..blocks).flat_map(|block| [block; os::BLOCK_BYTES]).collect();
    std::fs::write(&path, content).expect("there is room");
    let file = Machine::real().disk.open(&path, Access::Read).expect("it is there");
    let request = |block: u8| {
        let told = told.clone();
        ReadRequest {
            source: file.clone(),
            offset: u64::from(block) * os::BLOCK_BYTES as u64,
            buffer: Buffer::zeroed(os::BLOCK_BYTES),
            urgency: Urgency::Needed,
            ticket: u64::from(block),
            done: Box::new(move |buffer, outcome| {
                assert_eq!(outcome.expect("the file is as long"), os::BLOCK_BYTES);
                told.send((u64::from(block), buffer[0])).expect("the test waits");
            }),
        }
    };
    (0..blocks).map(request).collect()
}

#[test]
fn every_read_is_told_with_its_bytes_and_not_before_its_time() {
    let delay = Duration::from_millis(20);
    let Machine { reads, clock, .. } = machine(delay);
    let (told, heard) = channel();
    let began = clock.now();
    reads.submit(requests(8, &told));
    let mut seen: Vec<_> = (0..8).map(|_| heard.recv().expect("all are told")).collect();
    assert!(clock.now() >= began + delay);
    seen.sort_unstable();
    assert_eq!(seen, (0..8).map(|block| (block, block as u8)).collect::<Vec<_>>());
    let again = clock.now();
    reads.make(requests(1, &told).remove(0));
    assert_eq!(heard.recv().expect("it was made"), (0, 0));
    assert!(clock.now() >= again + delay);
}
