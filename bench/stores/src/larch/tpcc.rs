//! TPC-C on Larch. Each of the nine tables is a table of Larch, with the keys and values of [`tpcc::encoding`].
//! Customers and stock have column groups. Two indexes find customers by name and orders by customer. A tenth table,
//! `tpcc`, records how the database was made and which parts are loaded.
//!
//! With the option `counters=merge`, what warehouses and districts got in this year is not in their rows but in a table
//! of counters, `year_to_date`, under the same keys. A payment adds to it by merges.

mod load;
mod session;
#[cfg(test)]
mod tests;
mod view;

use super::{TableForm, broken, counters_of, open_in};
use ::tpcc::about;
use ::tpcc::database::{no_index, not_made};
use ::tpcc::encoding;
use ::tpcc::ordered::Index;
use ::tpcc::{Form, Loader, Part, Setup, Table, TpccScheme, View};
use harness::directory::bytes_text;
use harness::{Clock, Counter, Failure, Opening, Session, Setting, Store, StoreUse, Target};
use larch::index::IndexOptions;
use larch::options::LevelOptions;
use larch::{Database, Durability, Selection, TableOptions};
use rows::Extractor;
use std::sync::{Mutex, PoisonError};

/// `larch:DIR`.
pub const SCHEME: TpccScheme = TpccScheme { name: "larch", open, simulate: None };

/// Default for the transactions under way on each thread.
const DEPTH: usize = 128;

/// An open database.
struct Larch {
    db: Database,
    about: larch::Table,
    options: TableOptions,
    durability: Durability,
    /// Whether a new database gets a table of counters, and an old one must have it. `None`: as it was made.
    counters: Option<bool>,
    write_buffer_bytes: u64,
    /// Transactions under way on each thread.
    depth: usize,
    /// The tables and indexes, once they were needed.
    tables: Mutex<Option<Tables>>,
}

/// The nine tables in the order of [`Table::ALL`], with the selections and indexes that transactions read.
#[derive(Clone)]
struct Tables {
    all: [larch::Table; 9],
    /// Customers without their profile, and (`customers`) with it.
    accounts: Selection,
    customers: Selection,
    /// Stock without its data, and (`stock`) with it.
    quantities: Selection,
    stock: Selection,
    /// The indexes in the order of [`Index::ALL`].
    indexes: [larch::Index; 2],
    /// What warehouses and districts got in this year, if it is not in their rows.
    sums: Option<larch::Table>,
}

/// The name of the table of counters.
const SUMS: &str = "year_to_date";

impl Tables {
    fn of(&self, table: Table) -> &larch::Table {
        &self.all[table as usize]
    }
}

fn open(target: &Target, setup: &Setup) -> Result<Box<dyn ::tpcc::Database>, Failure> {
    Ok(Box::new(Larch::open(target, setup)?))
}

impl Larch {
    fn open(target: &Target, setup: &Setup) -> Result<Self, Failure> {
        let mut options = target.options()?;
        let cache = super::cache_budget(&mut options)?;
        let write_buffer_bytes = options.bytes("write_buffer", 64 << 20)?;
        let file_bytes = options.bytes("file", LevelOptions::default().file_bytes)?;
        let durability =
            options.choice("durability", &[("synced", Durability::Synced), ("buffered", Durability::Buffered)])?;
        let counters = options.choice("counters", &[("", None), ("put", Some(false)), ("merge", Some(true))])?;
        let reads_flat_index = options.choice("read_index", &[("btree", false), ("flat", true)])?;
        let form = TableForm::take(&mut options, 1)?;
        options.finish()?;
        let place = target.directory()?;
        let builder = || {
            let builder = Database::builder(place).durability(durability).publish_metrics(true);
            let builder = builder.cache_bytes(cache).write_buffer_bytes(write_buffer_bytes);
            let builder = builder.levels(LevelOptions { file_bytes, ..LevelOptions::default() });
            builder.prefer_flat_index(reads_flat_index).extractors(extractors::of)
        };
        let none =
            || Failure::session("no_store", format!("there is no database in {}: make it with init", place.display()));
        let db = open_in(place, setup.opening != Opening::Existing, builder)?.ok_or_else(none)?;
        let about = match setup.opening {
            Opening::Existing => db.existing_table(about::TABLE).map_err(broken)?.ok_or_else(none)?,
            Opening::OrCreate | Opening::Recreate => db.table(about::TABLE).map_err(broken)?,
        };
        let options = form.options();
        let (tables, depth) = (Mutex::new(None), setup.connections.unwrap_or(DEPTH));
        let larch = Larch { db, about, options, durability, counters, write_buffer_bytes, depth, tables };
        larch.check_counters()?;
        Ok(larch)
    }

    fn table(&self, table: Table) -> Result<larch::Table, Failure> {
        let none = || Failure::session("no_table", format!("there is no table {}: make it with init", table.name()));
        self.db.existing_table(table.name()).map_err(broken)?.ok_or_else(none)
    }

    /// What the database was made with, and whether it has the table of counters. `None` if nothing was made.
    fn made(&self) -> Result<Option<(Form, bool)>, Failure> {
        let value = self.about.get(about::form_key()).map_err(broken)?;
        value.map(|value| about::decode_form(&value)).transpose()
    }

    /// The table of counters, if the database was made with it.
    fn sums(&self) -> Result<Option<larch::Table>, Failure> {
        if !self.made()?.is_some_and(|(_, has_sums)| has_sums) {
            return Ok(None);
        }
        let none = || Failure::session("no_table", format!("there is no table {SUMS}: make it with init"));
        self.db.existing_table(SUMS).map_err(broken)?.ok_or_else(none).map(Some)
    }

    /// Fails if the target asks for other counters than those with which the database was made.
    fn check_counters(&self) -> Result<(), Failure> {
        let (Some((_, has_sums)), Some(asked)) = (self.made()?, self.counters) else { return Ok(()) };
        if asked == has_sums {
            return Ok(());
        }
        let made = if has_sums { "merge" } else { "put" };
        let text = format!("the database was made with counters={made}: leave `counters` out, or make a new database");
        Err(Failure::session("target", text))
    }

    /// Opens the tables and their indexes, which must exist.
    fn tables(&self) -> Result<Tables, Failure> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tables) = &*tables {
            return Ok(tables.clone());
        }
        let mut all = Vec::with_capacity(9);
        for table in Table::ALL {
            all.push(self.table(table)?);
        }
        let all: [larch::Table; 9] = all.try_into().unwrap_or_else(|_| unreachable!("there are nine"));
        let select =
            |table: Table, count| all[table as usize].select(&encoding::groups(table)[..count]).map_err(broken);
        let index = |index: Index| {
            let table: &larch::Table = &all[index.table() as usize];
            if !table.indexes().map_err(broken)?.iter().any(|known| known == index.name()) {
                return Err(no_index(index.name()));
            }
            table.index(index.name()).map_err(broken)
        };
        let found = Tables {
            accounts: select(Table::Customer, 1)?,
            customers: select(Table::Customer, 2)?,
            quantities: select(Table::Stock, 1)?,
            stock: select(Table::Stock, 2)?,
            indexes: [index(Index::CustomersByName)?, index(Index::OrdersByCustomer)?],
            sums: self.sums()?,
            all,
        };
        *tables = Some(found.clone());
        Ok(found)
    }
}

impl Store for Larch {
    fn settings(&self) -> Vec<Setting> {
        let durability = match self.durability {
            Durability::Buffered => "buffered: every write in the log, with the system, not synced",
            Durability::Synced => "synced: a transaction is answered once the log is synced",
        };
        let mut settings = vec![
            Setting::new("engine", concat!("Larch ", env!("CARGO_PKG_VERSION"))),
            Setting::new("isolation", "serializable"),
            Setting::new("durability", durability),
            Setting::new("cache", super::cache_text(&self.db)),
            Setting::new("write buffer", bytes_text(self.write_buffer_bytes)),
            Setting::new("under way", format!("{} transactions on each thread", self.depth)),
            Setting::new("reads", "direct, where the file system can"),
        ];
        if self.sums().is_ok_and(|sums| sums.is_some()) {
            settings.push(Setting::new("counters", "merge: W_YTD and D_YTD are counters, to which payments add"));
        }
        settings
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let form = ::tpcc::Database::form(self)?.ok_or_else(not_made)?;
        Ok(Session::Flights(session::session(self, self.tables()?, &form, clock)))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(::tpcc::Database::form(self)?.is_none())
    }

    fn counters(&self) -> Vec<Counter> {
        counters_of(&self.db)
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        self.db.flush().map_err(broken)?;
        self.db.compact_due().map_err(broken)
    }

    fn set_cache_bytes(&self, bytes: u64) -> Result<bool, Failure> {
        self.db.set_cache_bytes(bytes);
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        drop(self.tables);
        drop(self.about);
        self.db.close().map_err(broken)
    }
}

impl ::tpcc::Database for Larch {
    fn create(&self, form: &Form) -> Result<(), Failure> {
        let has_sums = self.counters == Some(true);
        for name in Table::ALL.iter().map(|table| table.name()).chain(has_sums.then_some(SUMS)) {
            if self.db.existing_table(name).map_err(broken)?.is_some() {
                let text = format!("there is a table {name} that is not of TPC-C: name a new directory");
                return Err(Failure::session("other_tables", text));
            }
        }
        // The form is stored first. If a crash leaves only some of the tables, the form shows that they are ours,
        // and `clean` drops them.
        let encoded = if has_sums { about::encode_form_with_sums(form) } else { about::encode_form(form) };
        self.about.insert(about::form_key(), encoded).map_err(broken)?;
        self.db.sync().map_err(broken)?;
        if has_sums {
            self.db.table_with(SUMS, self.options.clone()).map_err(broken)?;
        }
        for table in Table::ALL {
            let groups = encoding::groups(table).iter().map(|&group| group.to_owned()).collect();
            let options = TableOptions { groups, ..self.options.clone() };
            self.db.table_with(table.name(), options).map_err(broken)?;
        }
        Ok(())
    }

    fn form(&self) -> Result<Option<Form>, Failure> {
        Ok(self.made()?.map(|(form, _)| form))
    }

    fn part_loader(&self, part: &Part) -> Result<Box<dyn Loader + '_>, Failure> {
        Ok(Box::new(load::PartLoader::new(self, self.table(part.table)?, part)?))
    }

    fn is_loaded(&self, part: &Part) -> Result<bool, Failure> {
        self.about.contains_key(about::part_key(part)).map_err(broken)
    }

    fn make_indexes(&self) -> Result<(), Failure> {
        for index in Index::ALL {
            let table = self.table(index.table())?;
            if table.indexes().map_err(broken)?.iter().any(|known| known == index.name()) {
                continue;
            }
            let extractor = index.declaration().parse::<Extractor>().expect("it is the text of an extractor");
            table.create_index(index.name(), extractor.to_bytes(), &IndexOptions::default(), |_| {}).map_err(broken)?;
        }
        Ok(())
    }

    fn view(&self) -> Result<Box<dyn View + '_>, Failure> {
        Ok(Box::new(view::Snapshot::new(self)?))
    }

    fn clean(&self) -> Result<(), Failure> {
        // `create` stores the form first, so without a form any tables with these names are not ours.
        let (_, has_sums) = self.made()?.ok_or_else(not_made)?;
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = None;
        for table in Table::ALL {
            self.db.drop_table(table.name()).map_err(broken)?;
        }
        if has_sums {
            self.db.drop_table(SUMS).map_err(broken)?;
        }
        // The form marks the tables as ours, so it goes last: after a crash, `clean` can still drop the rest.
        self.about.remove_range(..).map_err(broken)
    }
}
