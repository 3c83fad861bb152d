//! Parses targets: texts that say on which store a run works, like `larch:DIR?cache=64MiB`,
//! `postgres://user@host/database`.

#[cfg(test)]
mod tests;

use crate::failure::Failure;
use crate::password::without_password;
use crate::request::Table;
use crate::store::Store;
use std::collections::BTreeMap;

/// A kind of store that can be opened.
#[derive(Clone, Copy)]
pub struct Scheme {
    /// The text before the colon.
    pub name: &'static str,
    /// How a target is written: `larch:DIR`.
    pub form: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Options after the question mark: the name, and a text that explains the option and its default.
    pub options: &'static [(&'static str, &'static str)],
    /// Whether the store runs in another process. If it does, the client's processor time does not include the
    /// store's processor time.
    pub networked: bool,
    /// Opens such a store.
    pub open: Open,
}

/// Opens a store on one table.
pub type Open = fn(&Target, &Table, Opening) -> Result<Box<dyn Store>, Failure>;

/// What may happen to existing data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The table must exist.
    Existing,
    /// The table is made if it does not exist.
    OrCreate,
    /// The table is emptied, or made if it does not exist.
    Recreate,
}

/// The parts of a target, as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The whole target.
    pub text: String,
    /// The text before the colon.
    pub scheme: String,
    /// The text after the colon, up to a question mark: a directory, or `//user@host/database`.
    pub place: String,
    /// The options after the question mark: `name=value`, separated by `&`. A percent sign has no special meaning
    /// here.
    pub query: Vec<(String, String)>,
}

impl Target {
    /// Splits `text` into its parts.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let bad = |why: &str| Failure::session("target", format!("target `{}`: {why}", without_password(text)));
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| bad("has no scheme; write `larch:DIR`, or see `larch bench targets`"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may be cut in two here. If the cut were accepted, a part of the password would be taken for a
        // host or a database, and would be shown.
        let behind = |address: &str| address.find(['/', '?']).is_some_and(|end| address[end..].contains('@'));
        if rest.strip_prefix("//").is_some_and(behind) {
            return Err(bad(
                "an `@` stands behind the host; in an address of PostgreSQL `/`, `?`, `@` and `#` of a password, and an `@` \
                 of an option, are written as %2F, %3F, %40 and %23",
            ));
        }
        let mut options: Vec<(String, String)> = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or_else(|| bad("an option is `name=value`"))?;
            if options.iter().any(|(before, _)| before == name) {
                return Err(bad(&format!("option `{name}` is there twice")));
            }
            options.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self { text: text.to_owned(), scheme: scheme.to_owned(), place: place.to_owned(), query: options })
    }

    /// The place, which has to be a directory.
    pub fn directory(&self) -> Result<&std::path::Path, Failure> {
        match self.place.as_str() {
            "" => Err(Failure::session(
                "target",
                format!("target `{}` names no directory: write `{}:DIR`", self.shown(), self.scheme),
            )),
            place => Ok(std::path::Path::new(place)),
        }
    }

    /// The target without its password, so that it may be shown.
    pub fn shown(&self) -> String {
        without_password(&self.text)
    }

    /// Its options. The store takes them one by one.
    pub fn options(&self) -> Result<Options, Failure> {
        let left = self.query.iter().cloned().collect();
        Ok(Options { target: self.shown(), left, known: Vec::new() })
    }
}

/// The options of a target. A store takes the options that it knows. An option that is left after opening does not
/// exist.
#[derive(Debug)]
pub struct Options {
    target: String,
    left: BTreeMap<String, String>,
    known: Vec<&'static str>,
}

impl Options {
    /// The value of option `name`, if it is given.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        self.left.remove(name)
    }

    /// The value among `choices` that option `name` chooses. If the option is not given, this is the first choice.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Result<T, Failure> {
        let Some(text) = self.text(name) else { return Ok(choices[0].1) };
        // In `choices`, the choice for a missing option has an empty name, so it is left out here.
        let names = choices.iter().map(|(name, _)| *name).filter(|name| !name.is_empty());
        let found = choices.iter().find(|(choice, _)| *choice == text).map(|(_, value)| *value);
        found.ok_or_else(|| self.bad(name, &text, &format!("one of {}", names.collect::<Vec<_>>().join(", "))))
    }

    /// The number that option `name` gives; `default` if the option is not given.
    pub fn number(&mut self, name: &'static str, default: u64) -> Result<u64, Failure> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| self.bad(name, &text, "a whole number"))
    }

    /// The number of bytes that option `name` gives, as [`kit::size::parse`] reads it.
    pub fn bytes(&mut self, name: &'static str, default: u64) -> Result<u64, Failure> {
        let Some(text) = self.text(name) else { return Ok(default) };
        kit::size::parse(&text).map_err(|_| self.bad(name, &text, "a size, like 4096, 64KiB, 256MiB or 1TiB"))
    }

    /// Refuses options that the store did not take.
    pub fn finish(self) -> Result<(), Failure> {
        let Some(name) = self.left.keys().next() else { return Ok(()) };
        let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
        Err(Failure::session(
            "target",
            format!("target `{}`: there is no option `{name}`; there is: {known}", self.target),
        ))
    }

    /// The failure for an option `name` that cannot have the value `text`.
    pub fn bad(&self, name: &str, text: &str, allowed: &str) -> Failure {
        Failure::session(
            "target",
            format!("target `{}`: option `{name}` is `{text}` and should be {allowed}", self.target),
        )
    }
}
