//! TPC-C on PostgreSQL and on databases that speak its protocol. The nine tables are in the first schema of the
//! user's search path. Transactions are prepared statements, sent over several connections.
//!
//! From the bottom up: `options` parses a target. `columns` has
//! the columns of the tables and the encoding of their values. `tables` has the SQL that creates the tables and
//! indexes, `load` fills them and `view` reads them. `statements` has the SQL of transactions, `work` is one
//! transaction under way, and `session` runs one on each of its connections.

mod columns;
mod isolation;
mod load;
mod options;
mod session;
mod statements;
mod tables;
#[cfg(test)]
mod tests;
mod view;
mod work;

use crate::postgres::address::in_environment;
use crate::postgres::connection::Connection;
use crate::postgres::dialect::{self, Dialect};
use crate::postgres::error::{Error, SqlState};
use crate::postgres::store::{counts, engine, first_process, server_settings, setting, used};
use ::tpcc::database::{no_index, not_made};
use ::tpcc::{Form, Loader, Part, Setup, Table, TpccScheme, View};
use harness::{Clock, Counter, Failure, Session, Setting, Store, StoreUse, Target};
use options::{Load, Options};
use statements::Statements;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `postgres://…`.
pub const POSTGRES: TpccScheme = TpccScheme {
    name: "postgres",
    open: |target, setup| open(&dialect::POSTGRES, target, setup),
    simulate: Some(|target, setup| simulate(&dialect::POSTGRES, target, setup)),
};

/// `cockroach://…`.
pub const COCKROACH: TpccScheme = TpccScheme {
    name: "cockroach",
    open: |target, setup| open(&dialect::COCKROACH, target, setup),
    simulate: Some(|target, setup| simulate(&dialect::COCKROACH, target, setup)),
};

/// `yugabyte://…`.
pub const YUGABYTE: TpccScheme = TpccScheme {
    name: "yugabyte",
    open: |target, setup| open(&dialect::YUGABYTE, target, setup),
    simulate: Some(|target, setup| simulate(&dialect::YUGABYTE, target, setup)),
};

/// An open database.
struct Postgres {
    dialect: &'static Dialect,
    options: Options,
    statements: Statements,
    /// Connections of each thread.
    connections: usize,
    /// The connection for everything that is not measured.
    control: Mutex<Connection>,
    settings: Vec<Setting>,
    /// The server's counters when the database was opened.
    before: Vec<Counter>,
    /// The server's postmaster process, if it runs on this machine.
    server: Option<u32>,
    functions_are_made: Mutex<bool>,
    /// The form of a simulation, once created.
    simulated: Mutex<Option<Form>>,
}

fn open(dialect: &'static Dialect, target: &Target, setup: &Setup) -> Result<Box<dyn ::tpcc::Database>, Failure> {
    Ok(Box::new(Postgres::new(dialect, options_of(dialect, target)?, setup)?))
}

/// Opens a simulation, in which the server returns constant rows in the same round trips as for real transactions.
/// It uses no tables.
fn simulate(dialect: &'static Dialect, target: &Target, setup: &Setup) -> Result<Box<dyn ::tpcc::Database>, Failure> {
    let options = Options { form: options::Form::Constants, ..options_of(dialect, target)? };
    Ok(Box::new(Postgres::new(dialect, options, setup)?))
}

fn options_of(dialect: &Dialect, target: &Target) -> Result<Options, Failure> {
    Options::of(target, dialect, in_environment)
}

/// The form of transactions, as the settings of a result describe it.
fn form_text(form: options::Form) -> &'static str {
    match form {
        options::Form::Statements => "prepared statements, sent together",
        options::Form::Functions => "a function of the server each",
        options::Form::Constants => "simulated: the same round trips with constant rows",
    }
}

impl Postgres {
    fn new(dialect: &'static Dialect, options: Options, setup: &Setup) -> Result<Self, Failure> {
        // The settings of a result are read over this connection, so it gets the same settings as those of
        // transactions.
        let mut control = Connection::open(&options.for_transactions)?;
        control.query("SET client_min_messages = warning")?;
        let connections = setup.connections.unwrap_or(options.address.connections as usize);
        let isolation = setting(&mut control, "default_transaction_isolation")?;
        let mut settings = server_settings(&mut control, &isolation)?;
        settings[0] = engine(dialect, &control);
        settings.push(Setting::new("transactions", form_text(options.form)));
        let of_sessions = options.for_transactions.settings.iter().filter(|(name, _)| name != "application_name");
        let of_sessions: Vec<String> = of_sessions.map(|(name, value)| format!("{name} {value}")).collect();
        settings.push(Setting::new("sessions", of_sessions.join(", ")));
        let (database, place) = (&options.address.database, &options.address.place);
        settings.push(Setting::new("client", format!("{database} at {place}, a thread: {connections} connections")));
        // Other servers lack some of these counters.
        let before = counts(&mut control).unwrap_or_default();
        let server = first_process(&mut control, &options.address);
        let statements = Statements::new(dialect, options.isolation, options.form);
        let control = Mutex::new(control);
        let (functions_are_made, simulated) = (Mutex::default(), Mutex::default());
        Ok(Self {
            dialect,
            options,
            statements,
            connections,
            control,
            settings,
            before,
            server,
            functions_are_made,
            simulated,
        })
    }

    fn control(&self) -> MutexGuard<'_, Connection> {
        // If a thread panicked in the middle of a statement, the connection reports an error at its next use.
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn simulated(&self) -> MutexGuard<'_, Option<Form>> {
        self.simulated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_simulation(&self) -> bool {
        self.options.form == options::Form::Constants
    }

    /// Opens a connection for transactions.
    fn prepared(&self) -> Result<Connection, Error> {
        let mut connection = Connection::open(&self.options.for_transactions)?;
        let statements: Vec<(String, &str)> = self.statements.all().collect();
        connection.prepare(statements.iter().map(|(name, sql)| (name.as_str(), *sql)))?;
        Ok(connection)
    }

    /// Refuses to run without the keys and indexes, because each statement would read a whole table.
    fn check_indexes(&self) -> Result<(), Failure> {
        let mut control = self.control();
        for table in Table::ALL {
            if columns::key(table).is_some() && !is_true(&mut control, &tables::has_key(table))? {
                return Err(no_index(&format!("of the keys of {}", table.name())));
            }
        }
        for name in tables::INDEXES {
            if !is_true(&mut control, &tables::is_there(name))? {
                return Err(no_index(name));
            }
        }
        Ok(())
    }

    /// Creates the functions that the statements call, once for each opened database. Drops existing ones first:
    /// they may be of another version, and the result type of a function cannot be replaced.
    fn make_functions(&self) -> Result<(), Error> {
        let mut are_made = self.functions_are_made.lock().unwrap_or_else(PoisonError::into_inner);
        if !*are_made && !self.statements.functions().is_empty() {
            // The lock lets one process at a time create them.
            let lock = self.dialect.lock_for_functions;
            let all = self.statements.functions().join("; ");
            self.control().query(&(lock.to_owned() + &statements::remove_functions() + &all))?;
        }
        *are_made = true;
        Ok(())
    }
}

/// Runs a statement that returns `t` or `f`.
fn is_true(control: &mut Connection, sql: &str) -> Result<bool, Error> {
    Ok(control.value(sql)? == "t")
}

#[cold]
fn nothing_there() -> Failure {
    Failure::request("simulated", "a simulation has no rows")
}

impl Store for Postgres {
    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let form = ::tpcc::Database::form(self)?.ok_or_else(not_made)?;
        if !self.is_simulation() {
            self.check_indexes()?;
        }
        self.make_functions()?;
        let connections = (0..self.connections).map(|_| self.prepared()).collect::<Result<_, _>>()?;
        Ok(Session::Flights(Box::new(session::Transactions::new(&self.statements, connections, &form, clock)?)))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(::tpcc::Database::form(self)?.is_none())
    }

    fn counters(&self) -> Vec<Counter> {
        let mut control = self.control();
        let now = counts(&mut control).unwrap_or_default();
        let before = |name| self.before.iter().find(|before| before.name == name).map_or(0, |before| before.value);
        let mut counters: Vec<Counter> =
            now.iter().map(|now| Counter::of(now.name, now.value.saturating_sub(before(now.name)))).collect();
        let sizes: Vec<String> =
            Table::ALL.iter().map(|table| format!("pg_total_relation_size(to_regclass('{}'))", table.name())).collect();
        let size = format!("SELECT {}", sizes.join(" + "));
        if let Some(bytes) = control.value(&size).ok().and_then(|bytes| bytes.parse().ok()) {
            counters.push(Counter::now("bytes on disk", bytes));
        }
        counters
    }

    /// What all processes of the server use, if it runs on this machine and we may see them.
    fn used(&self) -> StoreUse {
        used(self.server)
    }

    /// Vacuums and analyzes the tables, then makes a checkpoint if the user may do that.
    fn settle(&self) -> Result<(), Failure> {
        if !self.dialect.has_vacuum || self.is_simulation() {
            return Ok(());
        }
        let mut control = self.control();
        let names = Table::ALL.map(Table::name).join(", ");
        control.query(&format!("VACUUM (ANALYZE) {names}"))?;
        match control.query("CHECKPOINT") {
            Ok(_) => Ok(()),
            Err(error) if error.sqlstate() == Some(SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl ::tpcc::Database for Postgres {
    fn create(&self, form: &Form) -> Result<(), Failure> {
        if self.is_simulation() {
            *self.simulated() = Some(*form);
            return Ok(());
        }
        let mut control = self.control();
        for name in tables::all_names() {
            if is_true(&mut control, &tables::is_there(name))? {
                let text = format!(
                    "there is a table {name} that is not of TPC-C: name another database, or a schema of its own with \
                     search_path="
                );
                return Err(Failure::session("other_tables", text));
            }
        }
        let made = control.query(&tables::create(self.dialect, form));
        if made.is_err() {
            // The failed transaction is still open. Its own error is reported, not one of the ROLLBACK.
            drop(control.query("ROLLBACK"));
        }
        made?;
        Ok(())
    }

    fn form(&self) -> Result<Option<Form>, Failure> {
        if self.is_simulation() {
            return Ok(*self.simulated());
        }
        let mut control = self.control();
        if !is_true(&mut control, &tables::is_there(tables::ABOUT))? {
            return Ok(None);
        }
        let rows = control.query(&tables::form())?;
        let number = |at: usize| rows.first()?.get(at)?.as_ref()?.parse::<i64>().ok();
        let form = (|| {
            let (seed, loaded) = (number(1)?.cast_unsigned(), number(2)?);
            Some(Form { warehouses: number(0)?.try_into().ok()?, seed, loaded })
        })();
        let not_ours = || Failure::session("other_tables", format!("the table {} is not of TPC-C", tables::ABOUT));
        form.ok_or_else(not_ours).map(Some)
    }

    fn part_loader(&self, part: &Part) -> Result<Box<dyn Loader + '_>, Failure> {
        if self.is_simulation() {
            return Err(nothing_there());
        }
        let connection = Connection::open(&self.options.address)?;
        Ok(match self.options.load {
            Load::Copy => Box::new(load::Copying::begin(connection, part)?),
            Load::Insert => Box::new(load::Inserting::begin(connection, part)?),
        })
    }

    fn is_loaded(&self, part: &Part) -> Result<bool, Failure> {
        Ok(!self.is_simulation() && is_true(&mut self.control(), &tables::is_loaded(part))?)
    }

    fn make_indexes(&self) -> Result<(), Failure> {
        if self.is_simulation() {
            return Ok(());
        }
        let mut control = self.control();
        for table in Table::ALL {
            if let Some(key) = columns::key(table)
                && !is_true(&mut control, &tables::has_key(table))?
            {
                control.query(&tables::make_key(table, &key))?;
            }
        }
        for index in tables::make_indexes(self.dialect) {
            control.query(&index)?;
        }
        Ok(())
    }

    fn view(&self) -> Result<Box<dyn View + '_>, Failure> {
        if self.is_simulation() {
            return Err(nothing_there());
        }
        Ok(Box::new(view::Snapshot::new(&self.options.address, self.dialect)?))
    }

    fn clean(&self) -> Result<(), Failure> {
        // `create` stores the form first, so without a form any tables with these names are not ours.
        ::tpcc::Database::form(self)?.ok_or_else(not_made)?;
        if self.is_simulation() {
            *self.simulated() = None;
            return Ok(());
        }
        let mut control = self.control();
        control.query(&statements::remove_functions())?;
        *self.functions_are_made.lock().unwrap_or_else(PoisonError::into_inner) = false;
        // The table that marks the others as ours goes last: after a crash, `clean` can still drop the rest.
        for name in tables::all_names() {
            // A table with this name in a later schema of the search path is not ours.
            if is_true(&mut control, &tables::is_there(name))? {
                control.query(&format!("DROP TABLE {name}"))?;
            }
        }
        Ok(())
    }
}
