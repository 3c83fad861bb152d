//! Whether the client limited a run, and not the store.

#[cfg(test)]
mod tests;

use crate::objective::Objective;
use harness::Measure;
use harness::report::Run;
use std::fmt;

/// The part of the client that limited a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The client's own work, without the store's, took this share of the processors that its threads could use.
    Processor(f64),
    /// The requests themselves met the objective, but nearly all clients had a request under way all the time, so
    /// operations waited for a client. The number is the share of the time.
    Clients(f64),
    /// No request took as long as the bound, and clients were free, but operations were begun late: the machine did not
    /// give the client its processor in time. The number is the share of the time in which clients were free.
    Late(f64),
}

/// A client that works more than this share of its time is taken for the limit.
const BUSY: f64 = 0.7;
/// Clients that wait for the store more than this share of their time are taken for too few.
const OCCUPIED: f64 = 0.9;

impl Limit {
    /// What limited `run`, if it was the client. If the store is no server, the client's threads do the store's work
    /// too, and only the part that the same operations cost on a store that does nothing is the client's.
    pub fn of(run: &Run, objective: Objective, is_networked: bool) -> Option<Self> {
        let busy = busy(run, is_networked)?;
        if busy > BUSY {
            return Some(Self::Processor(busy));
        }
        let measured = &run.measured;
        let all = Measure::sum(&measured.kinds);
        let served_in_time = objective.of(&all.service).is_some_and(|nanos| nanos < objective.bound_nanos);
        let occupied_nanos = all.service.mean() * all.service.count() as f64;
        let occupied = occupied_nanos / (measured.clients.max(1) as f64 * measured.nanos.max(1) as f64);
        match occupied > OCCUPIED {
            _ if !served_in_time => None,
            true => Some(Self::Clients(occupied.min(1.0))),
            false => (all.service.max() < objective.bound_nanos).then_some(Self::Late(1.0 - occupied)),
        }
    }
}

/// The share of the processors that client threads could use, that the client's own work took. Waiting for the time of
/// an operation is left out: who waits is no limit. `None` if the client's part of the work was not measured.
fn busy(run: &Run, is_networked: bool) -> Option<f64> {
    let (measured, cost) = (&run.measured, &run.measured.cost);
    let own = if is_networked {
        cost.client_nanos.saturating_sub(cost.pausing_nanos) as f64
    } else {
        (run.noop_nanos? * measured.operations as f64).min(cost.client_nanos as f64)
    };
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let could_use = cost.client_threads.min(processors) as f64 * measured.nanos as f64;
    Some(if could_use == 0.0 { 0.0 } else { own / could_use })
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processor(share) => write!(
                out,
                "the client's own work took {:.0} % of the processor time that its threads could have; use more threads, or \
                 another machine for the client",
                share * 100.0
            ),
            Self::Clients(share) => write!(
                out,
                "the requests met the objective, but operations waited for a client: the clients had a request under way {:.0} % \
                 of the time; use more clients",
                share * 100.0
            ),
            Self::Late(share) => write!(
                out,
                "no request took as long as the bound and the clients were free {:.0} % of the time, but operations were begun \
                 late: something else used the processors of the client's machine",
                share * 100.0
            ),
        }
    }
}
