//! A client on a thread of its own, over a session whose calls wait.
//!
//! The clock is read before and after each call, so that what the client does in between — drawing keys, checking rows —
//! is not taken for the store's.

use super::recorder::{Answer, Begun, Recorder, Why};
use super::timeline::Schedule;
use crate::client::{Client, Extra, Next};
use crate::reply::Reply;
use crate::store::{Blocking, Failure, Harm};

/// Lets `client` work until it is done, `left` operations of the window are, the window is over, or it is told to stop.
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
        let done = loop {
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
            recorder.request(Answer { kind, sent, served, delay: begun.delay }, begun, &result, &reply);
            let mut retries = 0;
            let next = {
                let mut note = |kind, nanos, result| recorder.note(begun, kind, nanos, result);
                client.served(result.as_ref().copied(), &reply, &mut Extra::new(&mut note, &mut retries))
            };
            if retries > 0 {
                recorder.retried(begun, retries);
            }
            if let Err(failure) = result
                && failure.harm == Harm::Session
            {
                recorder.operation(begun, false);
                return Err(failure);
            }
            match next {
                Next::More => {}
                Next::Wait(nanos) => {
                    if let Some(why) = recorder.pause(served.saturating_add(nanos)) {
                        recorder.abandon(begun);
                        return Ok(why);
                    }
                }
                Next::Done => break recorder.operation(begun, true),
                Next::DoneAs(kind) => {
                    recorder.whole(kind, begun, served);
                    break recorder.operation(begun, true);
                }
                Next::Failed => break recorder.operation(begun, false),
            }
        };
        left -= u64::from(done);
    }
}
