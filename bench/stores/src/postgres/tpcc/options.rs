//! Parses a target into the TPC-C options and the server's address, which is the rest of the target.

use super::isolation::Isolation;
use crate::postgres::address::Address;
use crate::postgres::dialect::Dialect;
use harness::{Failure, Target};

/// How rows are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A COPY for each part.
    Copy,
    /// An INSERT for each row.
    Insert,
}

/// How transactions are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prepared statements.
    Statements,
    /// One server function for each transaction.
    Functions,
    /// Statements that return constant rows and change nothing.
    Constants,
}

/// A parsed target.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the server is.
    pub address: Address,
    /// The same address, with the settings of sessions that run transactions.
    pub for_transactions: Address,
    /// The isolation level of transactions.
    pub isolation: Isolation,
    /// How rows are loaded.
    pub load: Load,
    /// How transactions are sent.
    pub form: Form,
}

impl Options {
    /// Parses `target`. `variable` looks up environment variables.
    ///
    /// # Errors
    ///
    /// Fails if an option has an unknown value, or if the address contains a setting that is not allowed.
    pub fn of(target: &Target, dialect: &Dialect, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let mut address = Address::of(target, dialect, variable)?;
        if address.pipeline > 1 {
            let text = "pipeline: a connection carries out one transaction at a time; say connections= instead";
            return Err(Failure::session("target", text));
        }
        let mut take = |name: &str| {
            let at = address.settings.iter().rposition(|(setting, _)| setting == name)?;
            Some(address.settings.remove(at).1)
        };
        let isolation = choice(
            "isolation",
            take("isolation"),
            &[
                ("serializable", Isolation::Serializable),
                ("repeatable_read", Isolation::RepeatableRead),
                ("read_committed", Isolation::ReadCommitted),
            ],
        )?;
        let load = choice("load", take("load"), &[("copy", Load::Copy), ("insert", Load::Insert)])?;
        let form = choice("functions", take("functions"), &[("0", Form::Statements), ("1", Form::Functions)])?;
        if take("counters").is_some() {
            let text = "counters: an option of larch: alone; here the statement of a payment adds to the rows";
            return Err(Failure::session("target", text));
        }
        // The dialect's settings come first and the target's after them, so that the target's value wins.
        let ours = dialect.settings.iter().copied().chain([("default_transaction_isolation", isolation.sql())]);
        let ours: Vec<(String, String)> = ours.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        if address.settings.iter().any(|(name, _)| name == "default_transaction_isolation") {
            let text = "default_transaction_isolation: say isolation=serializable, repeatable_read or read_committed";
            return Err(Failure::session("target", text));
        }
        let mut for_transactions = address.clone();
        for_transactions.settings.splice(0..0, ours);
        Ok(Self { address, for_transactions, isolation, load, form })
    }
}

/// The value of an option, or the first choice if the option is not given.
fn choice<T: Copy>(name: &str, value: Option<String>, choices: &[(&str, T)]) -> Result<T, Failure> {
    let Some(value) = value else { return Ok(choices[0].1) };
    let found = choices.iter().find(|(word, _)| *word == value).map(|(_, choice)| *choice);
    found.ok_or_else(|| {
        let words = choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        Failure::session("target", format!("{name}={value} is none of {words}"))
    })
}
