//! The system's random numbers. This module does not know what the numbers are used for.

use crate::Random;
use rand::TryRng;
use rand::rngs::SysRng;

/// The system's random numbers. Each takes a system call, which is fast enough, because identifiers are made rarely.
#[derive(Clone, Copy, Debug)]
pub struct RealRandom;

impl Random for RealRandom {
    fn next_u64(&self) -> u64 {
        SysRng.try_next_u64().expect("the system gives random numbers at any time after boot")
    }
}
