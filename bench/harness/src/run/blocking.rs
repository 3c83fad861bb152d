//! A client on a thread of its own, over a session whose calls wait.
//!
//! The clock is read before and after each call, so that the client's own work between calls (drawing keys, checking rows) is
//! not counted as the store's.

use super::recorder::{After, Answer, Begun, Recorder, Why};
use super::timeline::Schedule;
use crate::client::Client;
use crate::reply::Reply;
use crate::store::{Blocking, Failure};

/// Drives `client` until it has nothing left, `left` operations of the window are done, the window is over, or the run is
/// stopped.
pub(crate) fn drive<C: Client>(
    session: &mut dyn Blocking,
    client: &mut C,
    recorder: &mut Recorder<'_>,
    mut schedule: Option<Schedule>,
    mut left: u64,
) -> Result<Why, Failure> {
    let clock = recorder.clock;
    let mut reply = Reply::new();
    loop {
        if recorder.halted() || recorder.over() {
            let now = clock.nanos();
            schedule.iter().for_each(|rest| recorder.all_unsent(rest, now));
            return Ok(if recorder.halted() { Why::Halted } else { Why::Over });
        }
        if left == 0 || !client.begin() {
            return Ok(Why::Done);
        }
        let mut begun: Option<Begun> = None;
        let counts = loop {
            let (kind, request) = client.request();
            let due = match (&mut schedule, begun) {
                (Some(schedule), None) => Some(schedule.next()),
                _ => None,
            };
            if let Some(due) = due
                && let Some(why) = recorder.pause(due)
            {
                let now = clock.nanos();
                recorder.unsent(due, now);
                schedule.iter().for_each(|rest| recorder.all_unsent(rest, now));
                return Ok(why);
            }
            reply.clear();
            let sent = clock.nanos();
            let result = session.call(&request, &mut reply);
            let served = clock.nanos();
            let begun = *begun.get_or_insert_with(|| {
                let at = due.unwrap_or(sent);
                Begun { at, sent, delay: sent.saturating_sub(at) }
            });
            let answer = Answer { kind, sent, served, delay: begun.delay };
            match recorder.answered(client, answer, begun, result, &reply)? {
                After::More => {}
                After::Wait(until) => {
                    if let Some(why) = recorder.pause(until) {
                        recorder.abandon(begun);
                        return Ok(why);
                    }
                }
                After::End { counts } => break counts,
            }
        };
        left -= u64::from(counts);
    }
}
