//! The TPC-C options of a target, and the address of the server, which is the rest of the target.

use super::dialect::Dialect;
use super::isolation::Isolation;
use crate::address::Address;
use harness::{Failure, Target};

/// How rows are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A COPY for each part.
    Copy,
    /// An INSERT for each row.
    Insert,
}

/// What transactions are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prepared statements.
    Statements,
    /// A function of the server for each transaction.
    Functions,
    /// Statements that give constant rows and change nothing.
    Constants,
}

/// What a target says.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the server is.
    pub address: Address,
    /// The address of the server, with the settings for sessions that carry out transactions.
    pub for_transactions: Address,
    /// How transactions are kept apart.
    pub isolation: Isolation,
    /// How rows are loaded.
    pub load: Load,
    /// What transactions are made of: statements or functions.
    pub form: Form,
}

impl Options {
    /// Takes the options from `target`; `variable` gives the environment.
    ///
    /// # Errors
    ///
    /// Fails if an option has an unknown value, or if the address contains a setting that is not allowed.
    pub fn of(target: &Target, dialect: &Dialect, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let (_, place) = target.text.split_once(':').unwrap_or(("", &target.text));
        let variable = |name: &str| match (name, variable(name)) {
            ("PGPORT", None) => Some(dialect.port.to_owned()),
            (_, value) => value,
        };
        let mut address = Address::parse(&format!("postgres:{place}"), variable)?;
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
        // The program has settings of its own, and the settings of the target are put after them. If the same
        // setting is in both lists, the server uses the value from the target.
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
