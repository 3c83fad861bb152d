//! The system's random numbers. This module does not know what the numbers are used for.

use crate::Random;
use rustix::rand::{GetRandomFlags, getrandom};

/// The system's random numbers. Each takes a system call, which is fast enough, because identifiers are made rarely.
#[derive(Clone, Copy, Debug)]
pub struct RealRandom;

impl Random for RealRandom {
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        loop {
            match getrandom(&mut bytes, GetRandomFlags::empty()) {
                // Up to 256 bytes come at once.
                Ok(8) => return u64::from_ne_bytes(bytes),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("the system gives random numbers at any time after boot, but said: {error}"),
            }
        }
    }
}
