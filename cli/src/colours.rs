//! Colours where a terminal shows them, or where `--color` asks for them.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use std::io;

/// The name of the program before an error.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The name of what the lines below are about, and the prompt of the shell.
pub const HEADING: Style = Style::new().bold();
/// A verdict that is good.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// A verdict that is bad.
pub const BAD: Style = ERROR;
/// What the shell proposes.
pub const HINT: Style = Style::new().dimmed();

/// When output has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColourArg {
    /// On a terminal
    #[default]
    Auto,
    /// In files and pipes, too
    Always,
    /// Never
    Never,
}

/// Sets when output has colours, for this process.
pub fn choose(when: ColourArg) {
    let choice = match when {
        ColourArg::Auto => ColorChoice::Auto,
        ColourArg::Always => ColorChoice::AlwaysAnsi,
        ColourArg::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Whether standard output has colours.
pub fn are_shown() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// The text for standard output, in a style if it has colours.
pub fn styled(style: Style, text: &str) -> String {
    if are_shown() { format!("{style}{text}{style:#}") } else { text.to_owned() }
}
