//! Drives a client on a thread of its own, with a session whose calls wait.
//!
//! The clock is read before and after each call. So the client's own work between calls (drawing keys, checking
//! rows) is not counted as the store's time.

use super::recorder::{After, Answer, Begun, Recorder, Why};
use crate::client::{Client, Wait};
use crate::failure::Failure;
use crate::reply::Reply;
use crate::store::Blocking;

/// Drives client `number` until it has no operation left, it has done `left` operations of the window, the window is
/// over, or the run is stopped. The caller has waited until this client may begin.
pub(crate) fn drive<C: Client>(
    session: &mut dyn Blocking,
    client: &mut C,
    recorder: &mut Recorder<'_>,
    number: usize,
    mut left: u64,
) -> Result<Why, Failure> {
    let clock = recorder.clock;
    let mut schedule = recorder.timeline.schedule(number);
    let mut reply = Reply::new();
    // When the client's last request was due, and when it was served.
    let mut due = recorder.timeline.ramp(number);
    let mut last_served = due;
    loop {
        if recorder.halted() || recorder.over() {
            let now = clock.nanos();
            schedule.iter().for_each(|rest| recorder.all_unsent(rest, now));
            return Ok(if recorder.halted() { Why::Halted } else { Why::Over });
        }
        if left == 0 || !client.begin() {
            return Ok(Why::Done);
        }
        let wait = if schedule.is_none() { client.wait() } else { Wait::NONE };
        let mut begun: Option<Begun> = None;
        let counts = loop {
            let (kind, request) = client.request();
            if begun.is_none() {
                due = schedule.as_mut().map_or_else(|| wait.until(due, last_served), |schedule| schedule.next());
                if (schedule.is_some() || due > last_served)
                    && let Some(why) = recorder.pause(due)
                {
                    let now = clock.nanos();
                    if let Some(rest) = &schedule {
                        recorder.unsent(due, now);
                        recorder.all_unsent(rest, now);
                    }
                    return Ok(why);
                }
            }
            reply.clear();
            let sent = clock.nanos();
            let result = session.call(&request, &mut reply);
            let served = clock.nanos();
            let begun = *begun.get_or_insert_with(|| {
                let delay = if recorder.queued() { sent.saturating_sub(due) } else { 0 };
                Begun { at: sent - delay, sent, delay }
            });
            let answer = Answer { kind, sent, served, delay: begun.delay };
            last_served = served;
            match recorder.answered(client, answer, begun, result, &reply)? {
                After::More => due = served,
                After::Wait(until) => {
                    due = until;
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
