//! Shows a run on a terminal while it goes on, and a result again as if it went on.
//!
//! A command asks [`Live::add`] to show each interval. If standard output and standard error are terminals, the view
//! fills the screen, and standard output gets the result when the screen is given back. Otherwise [`Live::add`] returns
//! `false`, and the command prints its line.

pub mod screen;
pub mod view;

use harness::Interval;
use view::{Head, View};

/// The view of a run, or of one run after the other. It takes the screen with the first interval.
pub struct Live {
    view: View,
    /// `None` before the first interval of the first run, and if there is no screen to take.
    screen: Option<screen::Screen>,
    is_wanted: bool,
    /// The second of the run of the last picture.
    drawn_at: Option<f64>,
}

/// The least time of a run between two pictures. Intervals may be shorter.
const PICTURE_SECONDS: f64 = 0.1;

/// The rows of the last picture, which is printed as text.
const PICTURE_ROWS: u16 = 24;

impl Live {
    /// A view of the run that `head` describes, unless the user asked for lines or for nothing.
    pub fn new(head: Head, is_wanted: bool) -> Self {
        Self { view: View::new(head), screen: None, is_wanted: is_wanted && screen::is_there(), drawn_at: None }
    }

    /// Whether intervals will be shown, as long as the terminal does not refuse.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Begins the view of another run. The last picture stays on the screen until that run has an interval.
    pub fn begin(&mut self, head: Head) {
        (self.view, self.drawn_at) = (View::new(head), None);
    }

    /// Shows an interval. Returns `false` if no screen can show it.
    pub fn add(&mut self, interval: &Interval) -> bool {
        if !self.is_wanted {
            return false;
        }
        if self.screen.is_none() {
            self.screen = screen::Screen::take();
            self.is_wanted = self.screen.is_some();
        }
        self.view.add(interval);
        let is_due = self.drawn_at.is_none_or(|before| self.view.seconds() - before >= PICTURE_SECONDS);
        if let Some(screen) = self.screen.as_mut().filter(|_| is_due) {
            screen.draw(&self.view);
            self.drawn_at = Some(self.view.seconds());
        }
        self.is_wanted
    }

    /// Gives the screen back, and returns its last picture as text.
    pub fn end(mut self) -> Option<String> {
        let (columns, rows) = self.screen.take()?.size();
        Some(self.view.text(columns, rows.min(PICTURE_ROWS)))
    }
}
