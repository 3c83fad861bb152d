//! What a buffer promises.

use super::Buffer;
use crate::BLOCK_BYTES;

#[test]
fn buffers_are_zeroed_aligned_and_of_whole_blocks() {
    for len in [0, 1, 511, 4095, 4096, 4097, 100_000] {
        let buffer = Buffer::zeroed(len);
        assert_eq!(buffer.len(), len);
        assert!(buffer.iter().all(|&byte| byte == 0));
        assert!(buffer.as_ptr().addr().is_multiple_of(BLOCK_BYTES));
        assert_eq!(buffer.capacity(), len.div_ceil(BLOCK_BYTES) * BLOCK_BYTES);
    }
}

#[test]
fn changing_the_length_keeps_the_bytes() {
    let mut buffer = Buffer::copied(b"larch");
    buffer.set_len_within_capacity(2);
    assert_eq!(&*buffer, b"la");
    buffer.set_len_within_capacity(6);
    assert_eq!(&*buffer, b"larch\0");
}

#[test]
#[should_panic(expected = "4097 bytes in a buffer of 4096")]
fn the_length_stays_within_the_capacity() {
    Buffer::zeroed(1).set_len_within_capacity(4097);
}

#[test]
fn an_empty_buffer_has_no_room() {
    let mut buffer = Buffer::zeroed(0);
    buffer.set_len_within_capacity(0);
    assert!(buffer.is_empty());
    buffer.fill(1);
}

#[test]
fn allocated_bytes_count_the_buffers_alive() {
    // Other tests allocate at the same time, but far less than this.
    const LARGE: usize = 64 << 20;
    let buffer = Buffer::zeroed(LARGE - 1);
    assert!(Buffer::allocated_bytes() >= LARGE);
    drop(buffer);
    assert!(Buffer::allocated_bytes() < LARGE);
}

#[test]
fn a_buffer_moves_between_threads() {
    let buffer = Buffer::copied(&[3; 10_000]);
    let sum = std::thread::spawn(move || buffer.iter().map(|&byte| u64::from(byte)).sum::<u64>()).join();
    assert_eq!(sum.expect("the thread only adds"), 30_000);
}
