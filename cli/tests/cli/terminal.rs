//! A terminal whose other end the test holds.

use crate::session::Session;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};

/// Makes a terminal, and returns its two ends: first the end for the test, then the end for the program.
pub fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("the system has terminals");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is ours");
    let name = ptsname(&ours, Vec::new()).expect("it has a name").into_string().expect("names are ASCII");
    let theirs = File::options().read(true).write(true).open(name).expect("it was unlocked");
    (File::from(ours), theirs)
}

/// What the line editor writes when it begins to take a line, and when it has taken one: how a terminal marks what is
/// pasted.
const PASTES: &str = "\u{1b}[?2004h";
const NO_PASTES: &str = "\u{1b}[?2004l";

/// A `larch` that has a terminal of its own for input and output.
pub struct OnTerminal {
    ours: File,
    child: Child,
    /// What the terminal has shown since the last [`OnTerminal::wait_for`].
    shown: String,
}

impl OnTerminal {
    /// Starts `larch` with these arguments on a terminal of 80 columns and 24 rows.
    pub fn start_with_size(session: &Session, args: &[&str]) -> Self {
        let (ours, theirs) = terminal();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("it is ours");
        Self::start_on((ours, theirs), session, args, |_| {})
    }

    /// Starts `larch` with these arguments on a terminal without a size. `change` may change the command before.
    pub fn start(session: &Session, args: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        Self::start_on(terminal(), session, args, change)
    }

    fn start_on(
        (ours, theirs): (File, File),
        session: &Session,
        args: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let copy = || theirs.try_clone().expect("a process may have more files");
        // The program leads a session of which this is the terminal, so that ^C becomes a signal. A script that starts
        // tests in the background makes them ignore ^C; `env` ends that.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "env", "--default-signal=INT", env!("CARGO_BIN_EXE_larch")]).args(args);
        command.current_dir(session.path("")).env("TERM", "xterm").env("LARCH_HISTORY", session.path("history"));
        command.stdin(copy()).stdout(copy()).stderr(copy());
        change(&mut command);
        let child = command.spawn().expect("setsid is there, and larch was built");
        Self { ours, child, shown: String::new() }
    }

    /// Sends the signal by which a service manager ends the program.
    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs until then");
    }

    /// Whether the terminal shows what is typed.
    pub fn echoes(&self) -> bool {
        tcgetattr(&self.ours).expect("it is a terminal").local_modes.contains(LocalModes::ECHO)
    }

    /// Types a text.
    pub fn type_in(&mut self, text: &str) {
        self.ours.write_all(text.as_bytes()).expect("larch reads");
    }

    /// Waits until the terminal has shown a text, and returns all that it has shown up to its end.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let mut chunk = [0; 4096];
            match self.ours.read(&mut chunk) {
                Ok(count @ 1..) => self.shown.push_str(&String::from_utf8_lossy(&chunk[..count])),
                _ => panic!("larch ended before it showed {text:?}: {:?}", self.shown),
            }
        }
    }

    /// Waits until the shell takes a line. What is typed before that may be lost.
    #[track_caller]
    pub fn wait_for_prompt(&mut self) {
        self.wait_for(PASTES);
        self.wait_for("> ");
    }

    /// Waits until the shell has taken a line.
    #[track_caller]
    pub fn wait_for_command(&mut self) {
        self.wait_for(NO_PASTES);
    }

    /// Waits for the end of the program, and returns its exit code and what the terminal has still shown.
    pub fn end(mut self) -> (Option<i32>, String) {
        let mut chunk = [0; 4096];
        // If the program's end of a terminal is closed, a read returns an error.
        while let Ok(count @ 1..) = self.ours.read(&mut chunk) {
            self.shown.push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
        (self.child.wait().expect("it was started").code(), self.shown)
    }
}
