//! `larch sql`: statements for a query engine. The engine is given by the binary; that of the default workspace has none. It
//! knows no SQL.

use crate::args::{Common, Sql};
use crate::database;
use crate::failure::{Failure, Result};
use crate::schema::columns;
use larch::{Database, Follow, Table};
use os::{Access, FileReader, Machine};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// How the rows of an answer are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum QueryFormat {
    /// A table with lines around its cells, once all rows are there
    Table,
    /// Comma-separated values with a header
    Csv,
    /// A JSON object on each line
    Jsonl,
}

/// What a query engine is asked.
#[derive(Debug)]
pub struct Query {
    /// The database, opened to be read.
    pub database: Database,
    /// Its directory, for messages.
    pub directory: PathBuf,
    /// Statements with a `;` between them.
    pub statements: String,
    /// How rows are printed.
    pub format: QueryFormat,
    /// Memory for the engine's work, in bytes.
    pub memory_bytes: u64,
    /// How many threads work on a query; `None`: one for each processor.
    pub threads: Option<u16>,
}

/// Answers a query on the standard output.
pub type RunQuery = fn(&Query) -> Result<()>;

impl Query {
    /// The columns of a table that `larch import` made, in the language of `docs/guide/sql.md`; `None` if the table was made
    /// in another way.
    ///
    /// # Errors
    ///
    /// [`Failure::Input`] if the description of the table is damaged.
    pub fn columns_of(&self, table: &Table) -> Result<Option<String>> {
        Ok(database::schema(table)?.map(|schema| columns::declared(&schema)))
    }
}

/// Runs the command.
pub fn run(common: &Common, args: &Sql, run: Option<RunQuery>) -> Result<()> {
    let Some(run) = run else {
        return Err(Failure::Usage("this binary has no query engine: run it with cargo x sql DIR …".to_owned()));
    };
    let mut statements = args.file.as_deref().map_or_else(|| Ok(String::new()), read)?;
    if let Some(text) = &args.statements {
        if !statements.trim_end().is_empty() && !statements.trim_end().ends_with(';') {
            statements.push_str(";\n");
        }
        statements.push_str(text);
    }
    let builder = common.builder(&args.dir)?.create(false);
    let builder = if common.follow { builder.follow(Follow::Commits) } else { builder.read_only(true) };
    let database = builder.open()?;
    let directory = args.dir.clone();
    let Sql { format, memory, threads, .. } = *args;
    run(&Query { database, directory, statements, format, memory_bytes: memory, threads })
}

/// The text of a file with statements.
fn read(file: &Path) -> Result<String> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().read_to_string(&mut text)
    } else {
        let file = Machine::real().disk.open(file, Access::Read);
        file.and_then(|file| FileReader::new(file).read_to_string(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::Input(format!("--file {}: {error}; give a file of statements", file.display()))),
    }
}
