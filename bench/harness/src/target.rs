//! Targets: which store a run works on, as in `larch:DIR?cache=64MiB`, `postgres://user@host/database`.

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
    /// What stands before the colon.
    pub name: &'static str,
    /// How a target is written: `larch:DIR`.
    pub form: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Options after the question mark: name, and what it says with its default.
    pub options: &'static [(&'static str, &'static str)],
    /// Whether the store is another process, so that the client's processor time is not the store's.
    pub networked: bool,
    /// Opens it.
    pub open: Open,
}

/// Opens a store on one table.
pub type Open = fn(&Target, &Table, Opening) -> Result<Box<dyn Store>, Failure>;

/// What may happen to existing data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The table must be there.
    Existing,
    /// The table is made if it is not there.
    OrCreate,
    /// The table is emptied, or made.
    Recreate,
}

/// A target as it was written, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The whole.
    pub text: String,
    /// Up to the colon.
    pub scheme: String,
    /// After the colon, up to a question mark: a directory, or `//user@host/database`.
    pub place: String,
    /// After the question mark, `name=value` between `&`. Percent signs stand for themselves here.
    pub query: Vec<(String, String)>,
}

impl Target {
    /// Takes `text` apart.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let bad = |why: &str| Failure::session("target", format!("target `{}`: {why}", without_password(text)));
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| bad("has no scheme; write `larch:DIR`, or see `larch bench targets`"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        // The password may be cut in two here, so that one part of it would be taken for a host or a database, and
        // shown as such.
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

    /// The target as it may be shown: without a password.
    pub fn shown(&self) -> String {
        without_password(&self.text)
    }

    /// Its options, to be taken one by one.
    pub fn options(&self) -> Result<Options, Failure> {
        let left = self.query.iter().cloned().collect();
        Ok(Options { target: self.shown(), left, known: Vec::new() })
    }
}

/// The options of a target. An option that nobody has taken at the end is a mistake.
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

    /// One of `choices`, the first if option `name` is not given.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Result<T, Failure> {
        let Some(text) = self.text(name) else { return Ok(choices[0].1) };
        // The value for an option that is not given has no name.
        let names = choices.iter().map(|(name, _)| *name).filter(|name| !name.is_empty());
        let found = choices.iter().find(|(choice, _)| *choice == text).map(|(_, value)| *value);
        found.ok_or_else(|| self.bad(name, &text, &format!("one of {}", names.collect::<Vec<_>>().join(", "))))
    }

    /// A number, `default` if option `name` is not given.
    pub fn number(&mut self, name: &'static str, default: u64) -> Result<u64, Failure> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| self.bad(name, &text, "a whole number"))
    }

    /// Bytes, as [`parse_bytes`] reads them.
    pub fn bytes(&mut self, name: &'static str, default: u64) -> Result<u64, Failure> {
        let Some(text) = self.text(name) else { return Ok(default) };
        parse_bytes(&text).map_err(|_| self.bad(name, &text, "a size, like 4096, 64KiB, 256MiB or 1TiB"))
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

    /// What is said when option `name` cannot be `text`.
    pub fn bad(&self, name: &str, text: &str, allowed: &str) -> Failure {
        Failure::session(
            "target",
            format!("target `{}`: option `{name}` is `{text}` and should be {allowed}", self.target),
        )
    }
}

/// Bytes from text, in every option of `larch`: a number, perhaps with a binary unit: `4096`, `4096B`, `16K`, `16KiB`,
/// `64MiB`, `1GiB`, `2TiB`; case does not matter.
///
/// # Errors
///
/// It is no size. The text says how one is written.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 4] = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let explain =
        |why: &str| format!("{why}; write a whole number of bytes or a binary unit: 4096, 16KiB, 64MiB, 1GiB, 2TiB");
    if number.is_empty() {
        return Err(explain("a size starts with a digit"));
    }
    let unit = unit.trim_start().to_ascii_uppercase();
    let shift = match unit.as_str() {
        "" | "B" => 0,
        other => match UNITS.iter().find(|(name, _)| other == *name || other == format!("{name}IB")) {
            Some((_, shift)) => *shift,
            None => return Err(explain(&format!("`{unit}` is not a unit of size"))),
        },
    };
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)).ok_or_else(|| explain("the size is too large"))
}
