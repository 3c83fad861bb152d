//! The memory of a process follows the limit of its arena. There is only one test, because it looks at all memory of
//! the process.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "threads of its own")]

use larch_os::memory::HUGE_LIMIT_BYTES;
use larch_os::{Arena, Buffer, process};
use std::thread;

const MIB: u64 = 1 << 20;

fn anonymous_bytes() -> u64 {
    process::memory().anonymous_bytes.expect("Linux tells it")
}

/// Buffers that fill the arena and were written to.
fn filled(arena: &std::sync::Arc<Arena>, bytes: usize) -> Vec<Buffer> {
    std::iter::from_fn(|| arena.buffer(bytes))
        .map(|mut buffer| {
            buffer.fill(1);
            buffer
        })
        .collect()
}

#[test]
#[cfg_attr(miri, ignore = "real memory")]
fn the_memory_of_the_process_follows_the_limit() {
    let before = anonymous_bytes();
    let grown = || anonymous_bytes().saturating_sub(before);
    for limit in [16 * MIB, 128 * MIB] {
        let arena = Arena::new(limit);
        let mut buffers = filled(&arena, 16 << 10);
        assert_eq!(arena.used_bytes(), limit);
        assert!(grown().abs_diff(limit) < 4 * MIB, "{} full: {}", limit, grown());

        // Every second buffer is dropped, so the other half of the memory stays in use.
        let mut at = 0;
        buffers.retain(|_| {
            at += 1;
            at % 2 == 0
        });
        arena.set_limit(limit / 2);
        assert_eq!(arena.backed_bytes(), limit / 2);
        assert!(grown().abs_diff(limit / 2) < 4 * MIB, "{} halved: {}", limit, grown());
        assert!(buffers.iter().all(|buffer| buffer.iter().all(|&byte| byte == 1)));

        // Now the buffers take more than the new limit. When buffers are dropped, the arena gives their memory
        // back to the system.
        arena.set_limit(limit / 8);
        buffers.truncate(buffers.len() / 4);
        assert_eq!(arena.backed_bytes(), limit / 8);
        assert!(grown().abs_diff(limit / 8) < 4 * MIB, "{} an eighth: {}", limit, grown());

        // The limit is raised to its first value, and many threads take buffers of other lengths.
        arena.set_limit(limit);
        thread::scope(|scope| {
            for thread in 0..32 {
                let arena = &arena;
                scope.spawn(move || {
                    let mut buffers = Vec::new();
                    for number in 0..1000 {
                        match arena.buffer((1 + (number * 7 + thread) % 9) << 12) {
                            Some(mut buffer) => {
                                buffer.fill(2);
                                buffers.push(buffer);
                            }
                            None => buffers.clear(),
                        }
                    }
                });
            }
        });
        assert!(grown() < limit + 6 * MIB, "{} with threads: {}", limit, grown());

        drop((buffers, arena));
        assert!(grown() < 6 * MIB, "{} gone: {}", limit, grown());
    }

    // In a small arena, a block is backed alone, and not with a huge page.
    let arena = Arena::new(HUGE_LIMIT_BYTES - 1);
    let present = anonymous_bytes();
    arena.buffer(1).expect("the arena is empty").fill(1);
    assert!(anonymous_bytes().saturating_sub(present) < MIB);

    // A large buffer outside the arena gives its memory back when it is dropped.
    let mut large = Buffer::zeroed(64 << 20);
    large.fill(1);
    assert!(Buffer::mapped_bytes() == 64 << 20 && grown() > 60 * MIB);
    drop(large);
    assert!(Buffer::mapped_bytes() == 0 && grown() < 6 * MIB);
}
