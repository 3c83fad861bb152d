//! A database that does nothing, which shows what the client itself costs.

use crate::database::{Database, KvScheme, Setup};
use harness::noop::Noop;
use harness::{Failure, Target};

/// The scheme `noop:`.
pub const SCHEME: KvScheme = KvScheme { name: "noop", networked: false, unused: &[], open };

fn open(target: &Target, setup: &Setup) -> Result<Box<dyn Database>, Failure> {
    target.options()?.finish()?;
    Ok(Box::new(Noop::flying(setup.requests_a_session())))
}

impl Database for Noop {
    fn truncate(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn drop_table(&self) -> Result<(), Failure> {
        Ok(())
    }
}
