//! A progress bar in the terminal, for work that takes longer than a second.

use crate::interrupt::Interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use os::{Clock, Machine};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Work that ends within this time shows no bar.
const QUIET: Duration = Duration::from_secs(1);

/// The progress bar of one piece of work. It appears only if stderr is a terminal, and it is removed when this
/// value is dropped.
pub struct Progress {
    bar: ProgressBar,
    clock: Arc<dyn Clock>,
    started: Duration,
    is_shown: bool,
}

impl Progress {
    /// Work whose size in bytes is known.
    pub fn bytes(what: impl Into<Cow<'static, str>>, total: u64) -> Self {
        Self::new(what, Some(total), "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left")
    }

    /// Work whose size in rows, files or pages is known.
    pub fn items(what: &'static str, total: u64) -> Self {
        Self::new(what, Some(total), "{msg} {wide_bar} {human_pos} of {human_len}, {eta} left")
    }

    /// Work of unknown size. The bar shows how much was done.
    pub fn endless(what: &'static str) -> Self {
        Self::new(what, None, "{spinner} {msg}: {human_pos} in {elapsed}")
    }

    fn new(what: impl Into<Cow<'static, str>>, total: Option<u64>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        bar.set_style(ProgressStyle::with_template(template).expect("our own template"));
        bar.set_message(what);
        let clock = Machine::real().clock;
        let started = clock.now();
        Self { bar, clock, started, is_shown: false }
    }

    /// Says how much of the work is done. A call is cheap but not free, so call it only every few thousand rows.
    pub fn set(&mut self, done: u64) {
        self.bar.set_position(done);
        if !self.is_shown && self.clock.now().saturating_sub(self.started) > QUIET {
            self.is_shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Says how much of the work is done and how much it is in all, for work that finds out its size on the way.
    pub fn set_of(&mut self, done: u64, total: u64) {
        if self.bar.length() != Some(total) {
            self.bar.set_length(total);
        }
        self.set(done);
    }

    /// Returns the callback for long work of the engine: it shows the progress, and stops the work after ^C.
    pub fn until(&mut self, interrupt: &Interrupt) -> impl FnMut(larch::Progress) -> ControlFlow<()> {
        |at| {
            if at.total > 0 {
                self.set_of(at.done, at.total)
            } else {
                self.set(at.done)
            }
            interrupt.goes_on()
        }
    }
}

impl Progress {
    /// Removes the bar from the terminal, because the work is done.
    pub fn clear(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
