//! The screen of the terminal: takes it and gives it back, however the process ends. It knows nothing of what is drawn.
//!
//! The screen is taken without the terminal's raw mode, so ^C stays a signal. Messages that are printed while the screen
//! is taken are kept, and printed when it is given back. A process has one screen. It may be given back by any thread:
//! by the one that draws, by one that panics, and by the one that a second ^C has end the process.

#[cfg(test)]
mod tests;

use super::view::View;
use os::sync::Mutex;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, size};
use ratatui::{Terminal, backend::Backend as _};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal as _, Stderr, Write as _, stderr, stdin, stdout};
use std::sync::LazyLock;

/// A terminal with fewer columns or rows gets lines.
const LEAST: (u16, u16) = (60, 16);

/// What was changed when the screen was taken, and the messages since then. `None` while no screen is taken.
static TAKEN: LazyLock<Mutex<Option<Taken>>> = LazyLock::new(|| Mutex::new(None));

struct Taken {
    /// How the terminal was set, if its input is this process's.
    before: Option<Termios>,
    messages: Vec<String>,
}

/// Whether the output goes to a terminal that can show a picture.
pub fn is_there() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
    let is_large = || size().is_ok_and(|(columns, rows)| columns >= LEAST.0 && rows >= LEAST.1);
    !is_dumb && stdout().is_terminal() && stderr().is_terminal() && is_large()
}

/// The screen, until it is dropped.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Screen {
    /// Takes the screen. `None` if the terminal refuses, or if another view has it.
    pub fn take() -> Option<Self> {
        LazyLock::force(&GIVES_BACK_BEFORE_PANICS);
        let mut taken = TAKEN.lock();
        if taken.is_some() {
            return None;
        }
        let terminal = Terminal::new(CrosstermBackend::new(stderr())).ok()?;
        *taken = Some(Taken { before: without_echo(), messages: Vec::new() });
        drop(taken);
        let mut screen = Self { terminal };
        // Dropping the screen gives the terminal back.
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen, Hide).ok()?;
        screen.terminal.backend_mut().clear().ok()?;
        Some(screen)
    }

    /// The columns and rows.
    pub fn size(&self) -> (u16, u16) {
        let area = self.terminal.size().unwrap_or_default();
        (area.width, area.height)
    }

    /// Draws the view, with the last message below it. Nothing is drawn on a screen that was given back, or if the
    /// terminal is gone: the run goes on.
    pub fn draw(&mut self, view: &View) {
        let taken = TAKEN.lock();
        if let Some(taken) = &*taken {
            let message = taken.messages.last().map(String::as_str);
            let drawn = self.terminal.draw(|frame| view.draw(message, frame.area(), frame.buffer_mut()));
            drawn.map(drop).unwrap_or_default();
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the screen back, if it is taken, and prints the messages that were kept.
pub fn give_back() {
    let Some(taken) = TAKEN.lock().take() else { return };
    let mut out = stderr();
    // An error means that the terminal is gone, so no user could read a message about it.
    execute!(out, LeaveAlternateScreen, Show).unwrap_or_default();
    if let Some(before) = taken.before {
        tcsetattr(stdin(), OptionalActions::Now, &before).unwrap_or_default();
    }
    for message in taken.messages {
        writeln!(out, "{message}").unwrap_or_default();
    }
}

/// Keeps a message if the screen is taken. Returns whether it did.
pub fn keeps(message: &str) -> bool {
    TAKEN.lock().as_mut().map(|taken| taken.messages.push(message.to_owned())).is_some()
}

/// Ends the echo of what is typed, which would be written into the picture.
fn without_echo() -> Option<Termios> {
    let before = tcgetattr(stdin()).ok()?;
    let mut changed = before.clone();
    changed.local_modes.remove(LocalModes::ECHO);
    tcsetattr(stdin(), OptionalActions::Now, &changed).ok()?;
    Some(before)
}

/// Has every panic give the screen back before its message is printed, from the first use on.
static GIVES_BACK_BEFORE_PANICS: LazyLock<()> = LazyLock::new(|| {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
    }));
});
