#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the test runs a process on a real terminal")]

use super::Screen;
use crate::live::view::{Head, View};
use harness::{Interval, Plan};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, stdin};
use std::process::Command;

/// Set in the process that the test starts on a terminal.
const VARIABLE: &str = "LARCH_SCREEN_TEST_INNER";
/// What the thread says that panics.
const WHY: &str = "a thread has met what cannot be";

/// What is written to take the screen, and to give it back with its cursor.
const TAKES: &str = "\u{1b}[?1049h";
const GIVES_BACK: &str = "\u{1b}[?1049l";
const CURSOR: &str = "\u{1b}[?25h";

fn echoes() -> bool {
    tcgetattr(stdin()).expect("it is a terminal").local_modes.contains(LocalModes::ECHO)
}

/// Takes the screen, and goes on after another thread has panicked.
fn panics_while_the_screen_is_taken() {
    let mut view = View::new(Head::of_plan("a run".to_owned(), "noop:", &Plan::default()));
    view.add(&Interval { to_nanos: 1_000_000_000, ..Interval::default() });
    let mut screen = Screen::take().expect("the terminal allows it");
    screen.draw(&view);
    assert!(!echoes(), "what is typed is no part of the picture");
    let panicked = std::thread::spawn(|| panic!("{WHY}")).join();
    assert!(panicked.is_err() && echoes(), "the terminal is as before");
    screen.draw(&view);
}

#[test]
fn a_panic_gives_the_screen_back_before_its_message() {
    if std::env::var_os(VARIABLE).is_some() {
        return panics_while_the_screen_is_taken();
    }
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("the system has terminals");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is ours");
    tcsetwinsize(&ours, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).expect("it is ours");
    let theirs = File::from(ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("it is unlocked"));
    let name = "live::screen::tests::a_panic_gives_the_screen_back_before_its_message";
    let mut process = {
        let copy = || theirs.try_clone().expect("a process may have more files");
        let mut command = Command::new(std::env::current_exe().expect("the test has a file"));
        command.args(["--exact", name, "--nocapture"]).env(VARIABLE, "1").env("TERM", "xterm");
        command.stdin(copy()).stdout(copy()).stderr(copy()).spawn().expect("the test can be run")
    };
    drop(theirs);
    let (mut ours, mut shown, mut chunk) = (File::from(ours), String::new(), [0; 4096]);
    // If the process's end of a terminal is closed, a read returns an error.
    while let Ok(count @ 1..) = ours.read(&mut chunk) {
        shown.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
    assert!(process.wait().expect("it was started").success(), "{shown:?}");
    let places = [TAKES, "stalls:", GIVES_BACK, CURSOR, WHY].map(|text| shown.find(text));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} of {shown:?}");
    for once in [TAKES, "stalls:", GIVES_BACK] {
        assert_eq!(shown.matches(once).count(), 1, "after the panic, nothing is drawn: {shown:?}");
    }
}
