//! The address of a server, as a target gives it: `redis://user:password@host:port/database?option=value`.

use harness::{Failure, Options, Target};

#[cfg(test)]
mod tests;

/// The port if the target names none.
const PORT: u16 = 6379;

/// Where a server is, and how it is used.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<String>,
    /// The number of the database.
    pub database: u32,
    /// Requests under way on the connection of a thread.
    pub pipeline: Option<usize>,
}

impl std::fmt::Display for Address {
    /// The address without user and password.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, port, database, .. } = self;
        match host.contains(':') {
            true => write!(out, "[{host}]:{port}/{database}"),
            false => write!(out, "{host}:{port}/{database}"),
        }
    }
}

impl Address {
    /// Parses a target.
    ///
    /// # Errors
    ///
    /// Fails if a part of the target is wrong, and says which one.
    pub fn parse(target: &Target) -> Result<Self, Failure> {
        let mut options: Options = target.options()?;
        let pipeline = options.number("pipeline", 0)?;
        options.finish()?;
        let bad = |why: &str| Failure::session("target", format!("target `{}`: {why}", target.shown()));
        let place = target.place.strip_prefix("//").ok_or_else(|| bad("write redis://host:port"))?;
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let database = match database {
            "" => 0,
            number => {
                number.parse().map_err(|_| bad("the database is a number, 0 to 15 unless the server has more"))?
            }
        };
        let (who, at) = authority.rsplit_once('@').map_or((None, authority), |(who, at)| (Some(who), at));
        let (user, password) = match who.map(|who| who.split_once(':').unwrap_or((who, ""))) {
            None => (None, None),
            Some((_, "")) => return Err(bad("a user needs a password: redis://user:password@host:port")),
            Some((user, password)) => {
                let decoded = |text| decoded(text).ok_or_else(|| bad("a `%` is followed by two hexadecimal digits"));
                (Some(decoded(user)?).filter(|user| !user.is_empty()), Some(decoded(password)?))
            }
        };
        let (host, port) = match at.strip_prefix('[') {
            Some(at) => at.split_once(']').ok_or_else(|| bad("the host has no `]`"))?,
            None => at.find(':').map_or((at, ""), |colon| at.split_at(colon)),
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => PORT,
            port => {
                let number = port.and_then(|port| port.parse().ok()).filter(|port| *port != 0);
                number.ok_or_else(|| bad("the port is a number from 1 to 65535"))?
            }
        };
        let host = if host.is_empty() { "localhost" } else { host };
        let pipeline = usize::try_from(pipeline).ok().filter(|pipeline| *pipeline > 0);
        Ok(Self { host: host.to_owned(), port, user, password, database, pipeline })
    }

    /// Whether the server may be a process of this machine.
    pub fn is_here(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|host: std::net::IpAddr| host.is_loopback())
    }
}

/// A text in which `%` and two hexadecimal digits stand for a byte.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match byte {
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
