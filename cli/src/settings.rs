//! Values of options that come from variables of the environment or from a file, for options that the command line
//! does not give. The order is command line, variable, file, default.
//!
//! A line of the file is `cache = 256MiB`, with the name of the option. `#` begins a comment. An option without a
//! value, such as `read-only`, is `true` or `false`.

use crate::failure::{CommandFailure, Result};
use clap::builder::Resettable;
use clap::{Arg, Command, Id};
use os::Machine;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// The variable that names the file. If it is empty, no file is read.
pub const FILE: &str = "LARCH_CONFIG";

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Variable(String),
    /// A line of the file, counted from 1.
    Line(PathBuf, usize),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Line(file, line) => write!(f, "{}:{line}", file.display()),
        }
    }
}

/// The value of an option.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The name of the option, without `--`.
    pub option: String,
    pub value: String,
    pub origin: Origin,
}

/// The variable for the option `--option`.
pub fn variable(option: &str) -> String {
    format!("LARCH_{}", option.replace('-', "_").to_uppercase())
}

/// The file with settings, whether it exists or not.
pub fn file() -> Option<PathBuf> {
    if let Some(file) = env::var_os(FILE) {
        return (!file.is_empty()).then(|| file.into());
    }
    let directory = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")))?;
    Some(config.join("larch").join("config"))
}

/// The settings of all `options`, from this process's variables and its file.
///
/// # Errors
///
/// Fails if the file cannot be read or understood. The error names the file and the line.
pub fn read(options: &[Arg]) -> Result<Vec<Setting>> {
    let file = file();
    let text = file.as_deref().map(text).transpose()?.flatten().unwrap_or_default();
    let lines = parse(&text, options, file.as_deref().unwrap_or(Path::new("")))?;
    of(options, lines, |name| env::var_os(name))
}

/// The text of the file, or `None` if it does not exist and no variable names it.
fn text(file: &Path) -> Result<Option<String>> {
    let cannot = |why: String| {
        CommandFailure::Usage(format!("{}: {why}; correct the file, or name another with {FILE}", file.display()))
    };
    match Machine::real().disk.read_all(file) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| cannot("it is not a text in UTF-8".to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound && env::var_os(FILE).is_none() => Ok(None),
        Err(error) => Err(cannot(error.to_string())),
    }
}

/// The settings in the text of a file.
fn parse(text: &str, options: &[Arg], file: &Path) -> Result<Vec<Setting>> {
    let mut found: Vec<Setting> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let origin = Origin::Line(file.to_owned(), at + 1);
        let wrong = |why: String| CommandFailure::Usage(format!("{origin}: {why}"));
        let Some((name, value)) = line.split_once('=') else {
            return Err(wrong(format!("{line:?} is no setting; write it as cache = 256MiB")));
        };
        let (name, value) = (name.trim(), value.trim().trim_matches('"'));
        if !options.iter().any(|option| option.get_long() == Some(name)) {
            return Err(wrong(format!("{name} is no option that a file can set; larch help options lists them")));
        }
        if let Some(before) = found.iter().find(|setting| setting.option == name) {
            return Err(wrong(format!("{name} was set at {} before; remove one of them", before.origin)));
        }
        found.push(Setting { option: name.to_owned(), value: value.to_owned(), origin });
    }
    Ok(found)
}

/// For each option, the setting of its variable or else of the file.
fn of(options: &[Arg], lines: Vec<Setting>, variable_of: impl Fn(&str) -> Option<OsString>) -> Result<Vec<Setting>> {
    let mut found = Vec::new();
    for long in options.iter().filter_map(Arg::get_long) {
        let name = variable(long);
        let value = variable_of(&name).filter(|value| !value.is_empty());
        let value = value.map(|value| {
            value.into_string().map_err(|_| CommandFailure::Usage(format!("{name} is not a text in UTF-8; correct it")))
        });
        match value.transpose()? {
            Some(value) => {
                found.push(Setting { option: long.to_owned(), value, origin: Origin::Variable(name) });
            }
            None => found.extend(lines.iter().find(|setting| setting.option == long).cloned()),
        }
    }
    Ok(found)
}

impl Setting {
    /// The setting as a word of a command line, or `None` if it is an option without a value that is not to be given.
    ///
    /// # Errors
    ///
    /// Fails if the option does not take this value. The error names the variable, or the file and the line.
    pub fn word(&self, option: &Arg) -> Result<Option<OsString>> {
        let Self { option: name, value, origin } = self;
        if !option.get_action().takes_values() {
            return match value.as_str() {
                "true" => Ok(Some(format!("--{name}").into())),
                "false" => Ok(None),
                _ => Err(CommandFailure::Usage(format!("{origin}: {name} is true or false, and not {value:?}"))),
            };
        }
        let word = OsString::from(format!("--{name}={value}"));
        // The option is alone here, and an option must not conflict with one that does not exist.
        let alone = option.clone().global(false).conflicts_with(Resettable::<Id>::Reset);
        let command = Command::new("larch").no_binary_name(true).arg(alone);
        let Err(error) = command.try_get_matches_from([&word]) else { return Ok(Some(word)) };
        let text = error.render().to_string();
        let why = text.trim_start_matches("error: ").split("\n\nFor more").next().unwrap_or_default();
        Err(CommandFailure::Usage(format!("{origin}: {}", why.trim_end())))
    }
}
