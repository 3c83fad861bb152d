//! The row access benchmark on PostgreSQL and on databases that speak its protocol, with the statements of ybio.
//!
//! Only YugabyteDB knows tablets, into which it splits tables and indexes.

use crate::postgres::address::{Address, in_environment};
use crate::postgres::connection::{Connection, Row};
use crate::postgres::dialect::{self, Dialect};
use crate::postgres::store::{engine, first_process, used};
use ::row_access::database::JOBS_TABLE;
use ::row_access::{
    Access, Batch, Counted, Database, Inside, Job, Loader, Opening, Order, RowAccessScheme, Seen, SeenInside, Session,
    Statement, TableForm,
};
use harness::{Failure, Setting, StoreUse, Target};
use kit::time::Timestamp;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(test)]
mod tests;

/// `postgres://…`.
pub const SCHEME: RowAccessScheme = RowAccessScheme {
    name: "postgres",
    orders_by_sql: true,
    open: |target, opening| open(&dialect::POSTGRES, target, opening),
};

/// `cockroach://…`.
pub const COCKROACH: RowAccessScheme =
    RowAccessScheme { name: "cockroach", open: |target, opening| open(&dialect::COCKROACH, target, opening), ..SCHEME };

/// `yugabyte://…`.
pub const YUGABYTE: RowAccessScheme =
    RowAccessScheme { name: "yugabyte", open: |target, opening| open(&dialect::YUGABYTE, target, opening), ..SCHEME };

struct Postgres {
    dialect: &'static Dialect,
    address: Address,
    control: Mutex<Connection>,
    /// The server's count of page reads when the store was opened.
    page_reads_before: u64,
    /// The server's postmaster process, if it runs on this machine.
    server: Option<u32>,
}

fn open(dialect: &'static Dialect, target: &Target, _: Opening) -> Result<Box<dyn Database>, Failure> {
    let address = Address::of(target, dialect, in_environment)?;
    let mut control = Connection::open(&address)?;
    // Without `client_min_messages`, each DROP of a missing table would cause a notice.
    control.query("SET client_min_messages = warning; SET timezone = 'UTC'")?;
    let page_reads_before = page_reads(&mut control).unwrap_or(0);
    let server = first_process(&mut control, &address);
    Ok(Box::new(Postgres { dialect, address, control: Mutex::new(control), page_reads_before, server }))
}

/// How many pages the server has read from the system. Sessions report late, so the newest reads may be missing.
fn page_reads(control: &mut Connection) -> Option<u64> {
    let sql = "SELECT blks_read FROM pg_stat_database WHERE datname = current_database()";
    control.value(sql).ok()?.parse().ok()
}

impl Postgres {
    fn control(&self) -> MutexGuard<'_, Connection> {
        // If a thread panicked in the middle of a statement, the connection reports an error at its next use.
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exists(&self, relation: &str) -> Result<bool, Failure> {
        Ok(self.control().value(&format!("SELECT to_regclass('{relation}') IS NOT NULL"))? == "t")
    }
}

impl Database for Postgres {
    fn settings(&self) -> Vec<Setting> {
        let mut control = self.control();
        let engine = engine(self.dialect, &control);
        let mut show = |name: &str| control.value(&format!("SHOW {name}")).unwrap_or_default();
        vec![
            engine,
            Setting::new(
                "durability",
                format!("fsync {}, synchronous_commit {}", show("fsync"), show("synchronous_commit")),
            ),
            Setting::new("cache", format!("{} (shared_buffers)", show("shared_buffers"))),
            Setting::new("client", format!("{} at {}", self.address.database, self.address.place)),
        ]
    }

    fn used(&self) -> StoreUse {
        used(self.server)
    }

    fn create(&self, form: &TableForm, recreate: bool) -> Result<Vec<String>, Failure> {
        let mut control = self.control();
        let has_tablets = control.parameter("server_version").is_some_and(|version| version.contains("-YB-"));
        if recreate {
            control.query(&format!("DROP TABLE IF EXISTS {}", form.name))?;
        }
        let TableForm { name, filler, .. } = form;
        let key = if form.index_as_pk { " PRIMARY KEY" } else { "" };
        let filler = if *filler == 0 { String::new() } else { format!(", filler char({filler})") };
        let mut table = format!("CREATE TABLE IF NOT EXISTS {name} (mykey bigint{key}, scratch bigint{filler})");
        let mut index = format!("CREATE INDEX IF NOT EXISTS {} ON {name} (mykey ASC)", form.index());
        let mut notes = Vec::new();
        if has_tablets && form.tablets > 0 {
            table.push_str(&format!(" SPLIT INTO {} TABLETS", form.tablets));
        }
        if has_tablets && form.index_tablets > 1 {
            let tablets = u64::from(form.index_tablets);
            let borders = (1..tablets).map(|tablet| format!("({})", (tablet * form.rows).div_ceil(tablets)));
            index.push_str(&format!(" SPLIT AT VALUES ({})", borders.collect::<Vec<_>>().join(", ")));
        }
        for (parameter, tablets) in [("tab_tablets", form.tablets), ("ind_tablets", form.index_tablets)] {
            if !has_tablets && tablets > 0 {
                notes.push(format!("{parameter} has no effect: this server has no tablets"));
            }
        }
        control.query(&table)?;
        if !form.index_as_pk {
            control.query(&index)?;
        }
        Ok(notes)
    }

    fn loader(&self, form: &TableForm, order: &Order) -> Result<Box<dyn Loader + '_>, Failure> {
        let connection = Connection::open(&self.address)?;
        Ok(Box::new(Inserts { connection, form: form.clone(), order: order.clone() }))
    }

    /// Vacuums and analyzes the table, so that index-only scans work.
    fn settle(&self, table: &str) -> Result<(), Failure> {
        if self.dialect.has_vacuum {
            self.control().query(&format!("VACUUM (ANALYZE) {table}"))?;
        }
        Ok(())
    }

    fn session(&self, access: &Access) -> Result<Box<dyn Session + '_>, Failure> {
        let mut connection = Connection::open(&self.address)?;
        let statements = Statements::new(access);
        if access.prepared {
            for (name, sql) in [("read", &statements.read), ("change", &statements.update)] {
                connection.query(&format!("PREPARE {name} (bigint, bigint) AS {sql}"))?;
            }
        }
        Ok(Box::new(Accesses { connection, prepared: access.prepared, statements }))
    }

    fn count(&self, table: &str) -> Result<Counted, Failure> {
        let rows = self.control().query(&format!("SELECT count(*), max(scratch) FROM {table}"))?;
        let seen = seen(&rows)?;
        Ok(Counted { rows: seen.rows, scratch: seen.max })
    }

    fn access_path(&self, access: &Access, statement: Statement, first: i64, last: i64) -> Result<String, Failure> {
        let statements = Statements::new(access);
        let sql = match statement {
            Statement::Read => format!("EXPLAIN (ANALYZE, BUFFERS) {}", with_keys(&statements.read, first, last)),
            Statement::Update => format!("EXPLAIN {}", with_keys(&statements.update, first, last)),
        };
        let lines = self.control().query(&sql)?.into_iter().flatten().flatten();
        Ok(lines.map(|line| line + "\n").collect())
    }

    fn page_reads(&self) -> Option<u64> {
        Some(page_reads(&mut self.control())?.saturating_sub(self.page_reads_before))
    }

    fn run_inside(&self, inside: &Inside<'_>) -> Result<Option<SeenInside>, Failure> {
        let mut connection = Connection::open(&self.address)?;
        connection.query(PROCEDURE)?;
        let Inside { access, tab_rows, batch_rows, pct_update, time, compat } = inside;
        let rows = connection.query(&format!(
            "CALL larch_rows_run('{}', {tab_rows}, {batch_rows}, {pct_update}, {}, {}, {}, {compat}, 0, 0, 0, NULL)",
            access.table,
            access.index_only,
            access.prepared,
            time.as_secs_f64(),
        ))?;
        let number = |column: usize| rows.first()?.get(column)?.as_ref()?.parse::<i64>().ok();
        let count = |column| number(column).map(i64::unsigned_abs);
        let (Some(batches), Some(rows), Some(updated)) = (count(0), count(1), count(2)) else {
            return Err(Failure::session("protocol", "the server sent no result of the procedure"));
        };
        Ok(Some(SeenInside { batches, updated, seen: Seen { rows, max: number(3) } }))
    }

    fn make_jobs(&self) -> Result<(), Failure> {
        let columns = "job_id bigserial PRIMARY KEY, start_time timestamp DEFAULT now(), end_time timestamp, \
                       num_batches int, num_rows bigint, pct_update int, max_scratch bigint, prepared boolean, \
                       index_only boolean, tab_rows bigint, batch_size int, table_name text, table_rows bigint, \
                       table_scratch bigint, comments text";
        self.control().query(&format!("CREATE TABLE IF NOT EXISTS {JOBS_TABLE} ({columns})"))?;
        Ok(())
    }

    fn begin_job(&self, job: &Job) -> Result<i64, Failure> {
        self.make_jobs()?;
        let mut control = self.control();
        let id = control.value(&format!(
            "INSERT INTO {JOBS_TABLE} (start_time, pct_update, prepared, index_only, tab_rows, batch_size, table_name, \
             table_rows, table_scratch, comments) VALUES ('{}', {}, {}, {}, {}, {}, '{}', {}, {}, {}) RETURNING job_id",
            job.start_time.text(),
            job.pct_update,
            job.prepared,
            job.index_only,
            job.tab_rows,
            job.batch_size,
            job.table_name,
            sql(job.table_rows),
            sql(job.table_scratch),
            job.comments.as_ref().map_or("NULL".to_owned(), |text| literal(text)),
        ))?;
        id.parse().map_err(|_| not_ours(&id))
    }

    fn end_job(&self, job: &Job) -> Result<(), Failure> {
        self.control().query(&format!(
            "UPDATE {JOBS_TABLE} SET end_time = {}, num_batches = {}, num_rows = {}, max_scratch = {} WHERE job_id = {}",
            job.end_time.map_or("NULL".to_owned(), |end| literal(&end.text())),
            sql(job.num_batches),
            sql(job.num_rows),
            sql(job.max_scratch),
            job.job_id,
        ))?;
        Ok(())
    }

    fn jobs(&self, limit: u64) -> Result<Vec<Job>, Failure> {
        if !self.exists(JOBS_TABLE)? {
            return Ok(Vec::new());
        }
        let micros = |column: &str| format!("(extract(epoch FROM {column}) * 1000000)::bigint");
        let rows = self.control().query(&format!(
            "SELECT job_id, {}, {}, num_batches, num_rows, pct_update, max_scratch, prepared, index_only, tab_rows, \
             batch_size, table_name, table_rows, table_scratch, comments FROM {JOBS_TABLE} ORDER BY job_id DESC LIMIT {limit}",
            micros("start_time"),
            micros("end_time"),
        ))?;
        rows.iter().map(job).collect()
    }

    fn clean(&self, prefix: &str, with_jobs: bool) -> Result<Vec<String>, Failure> {
        let mut control = self.control();
        let names = control.query(&format!(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND \
             (tablename ~ '^{prefix}[0-9]{{4}}$' OR ({with_jobs} AND tablename = '{JOBS_TABLE}')) ORDER BY tablename"
        ))?;
        let names: Vec<String> = names.into_iter().flatten().flatten().collect();
        for name in &names {
            control.query(&format!("DROP TABLE {name}"))?;
        }
        Ok(names)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A session that runs inside the server: the statements of ybio's session, with a commit after each.
const PROCEDURE: &str = "
CREATE OR REPLACE PROCEDURE larch_rows_run(
    tab text, tab_rows bigint, batch bigint, pct int, index_only boolean, prepared boolean, seconds float8, compat boolean,
    INOUT batches bigint, INOUT seen bigint, INOUT updated bigint, INOUT max_seen bigint)
LANGUAGE plpgsql AS $body$
DECLARE
    ends timestamptz := clock_timestamp() + seconds * interval '1 second';
    shown text := CASE WHEN index_only THEN 'mykey' ELSE 'scratch' END;
    change text := CASE WHEN index_only THEN 'mykey = mykey' ELSE 'scratch = scratch + 1' END;
    reads text := format('SELECT count(*), max(%1$s) FROM %2$I WHERE mykey BETWEEN $1 AND $2', shown, tab);
    writes text := format('WITH changed AS (UPDATE %2$I SET %3$s WHERE mykey BETWEEN $1 AND $2 RETURNING %1$s) '
                          'SELECT count(*), max(%1$s) FROM changed', shown, tab, change);
    first_key bigint;
    last_key bigint;
    is_update boolean;
    batch_rows bigint;
    batch_max bigint;
BEGIN
    IF prepared THEN
        EXECUTE 'PREPARE larch_rows_read (bigint, bigint) AS ' || reads;
        EXECUTE 'PREPARE larch_rows_write (bigint, bigint) AS ' || writes;
    END IF;
    LOOP
        first_key := CASE WHEN compat THEN trunc(random() * (tab_rows - batch - 1) + 1)
                          ELSE floor(random() * (tab_rows - batch + 1)) + 1 END;
        last_key := first_key + batch - 1;
        is_update := pct = 100 OR 100 * (updated + 0.5 * batch) / (seen + batch) < pct;
        IF prepared THEN
            EXECUTE format('EXECUTE %I(%s, %s)',
                           CASE WHEN is_update THEN 'larch_rows_write' ELSE 'larch_rows_read' END, first_key, last_key)
                INTO batch_rows, batch_max;
        ELSE
            EXECUTE CASE WHEN is_update THEN writes ELSE reads END INTO batch_rows, batch_max USING first_key, last_key;
        END IF;
        COMMIT;
        batches := batches + 1;
        seen := seen + batch_rows;
        updated := updated + CASE WHEN is_update THEN batch_rows ELSE 0 END;
        max_seen := greatest(max_seen, batch_max);
        EXIT WHEN clock_timestamp() >= ends;
    END LOOP;
END
$body$";

fn sql(number: Option<i64>) -> String {
    number.map_or("NULL".to_owned(), |number| number.to_string())
}

/// A string literal in SQL.
fn literal(text: &str) -> String {
    // PostgreSQL's text cannot contain zero bytes, so they are left out.
    format!("'{}'", text.replace('\'', "''").replace('\0', ""))
}

#[cold]
fn not_ours(what: &str) -> Failure {
    Failure::session("not_ours", format!("the table of runs was not made by this benchmark: {what}"))
}

fn job(row: &Row) -> Result<Job, Failure> {
    let text = |column: usize| row.get(column).and_then(Option::as_deref);
    let maybe = |column: usize| text(column).map(|text| text.parse::<i64>().map_err(|_| not_ours(text))).transpose();
    let number = |column: usize| Ok::<_, Failure>(maybe(column)?.unwrap_or(0));
    Ok(Job {
        job_id: number(0)?,
        start_time: Timestamp(number(1)?),
        end_time: maybe(2)?.map(Timestamp),
        num_batches: maybe(3)?,
        num_rows: maybe(4)?,
        pct_update: number(5)?,
        max_scratch: maybe(6)?,
        prepared: text(7) == Some("t"),
        index_only: text(8) == Some("t"),
        tab_rows: number(9)?,
        batch_size: number(10)?,
        table_name: text(11).unwrap_or_default().to_owned(),
        table_rows: maybe(12)?,
        table_scratch: maybe(13)?,
        comments: text(14).map(str::to_owned),
    })
}

/// The statements of a session, with `$1` and `$2` for the first and the last key.
struct Statements {
    read: String,
    update: String,
}

impl Statements {
    fn new(access: &Access) -> Self {
        let table = &access.table;
        let (column, change) = match access.index_only {
            true => ("mykey", "mykey = mykey"),
            false => ("scratch", "scratch = scratch + 1"),
        };
        let range = "mykey BETWEEN $1 AND $2";
        Self {
            read: format!("SELECT count(*), max({column}) FROM {table} WHERE {range}"),
            update: format!(
                "WITH changed AS (UPDATE {table} SET {change} WHERE {range} RETURNING {column}) \
                 SELECT count(*), max({column}) FROM changed"
            ),
        }
    }
}

fn with_keys(sql: &str, first: i64, last: i64) -> String {
    sql.replace("$1", &first.to_string()).replace("$2", &last.to_string())
}

/// Parses the only row of a counting statement.
fn seen(rows: &[Row]) -> Result<Seen, Failure> {
    let number = |column: usize| rows.first()?.get(column)?.as_ref()?.parse::<i64>().ok();
    let count = number(0).ok_or_else(|| Failure::session("protocol", "the server sent no count of rows"))?;
    Ok(Seen { rows: count.unsigned_abs(), max: number(1) })
}

/// Inserts batches whose rows the server itself generates.
struct Inserts {
    connection: Connection,
    form: TableForm,
    order: Order,
}

impl Loader for Inserts {
    fn insert(&mut self, batch: &Batch) -> Result<(), Failure> {
        if batch.rows == 0 {
            return Ok(());
        }
        let TableForm { name, filler, .. } = &self.form;
        let filler = match filler {
            0 => String::new(),
            bytes => format!(", left(repeat(md5(mykey::text), {}), {bytes}) AS filler", bytes.div_ceil(32)),
        };
        let order = match &self.order {
            Order::Made => String::new(),
            Order::Key => " ORDER BY mykey".to_owned(),
            Order::Scratch => " ORDER BY scratch".to_owned(),
            Order::Sql(expression) => format!(" ORDER BY {expression}"),
        };
        let (first, step, last) = (batch.first, batch.step, batch.rows - 1);
        self.connection.query(&format!(
            "INSERT INTO {name} SELECT * FROM (SELECT mykey, floor(random() * {})::bigint AS scratch{filler} \
             FROM (SELECT {first} + {step} * number AS mykey FROM generate_series(0::bigint, {last}) AS number) keys) \
             made{order}",
            batch.most_scratch
        ))?;
        Ok(())
    }
}

/// Accesses rows.
struct Accesses {
    connection: Connection,
    prepared: bool,
    statements: Statements,
}

impl Session for Accesses {
    fn access(&mut self, statement: Statement, first: i64, last: i64) -> Result<Seen, Failure> {
        let (name, sql) = match statement {
            Statement::Read => ("read", &self.statements.read),
            Statement::Update => ("change", &self.statements.update),
        };
        let sql = match self.prepared {
            true => format!("EXECUTE {name}({first}, {last})"),
            false => with_keys(sql, first, last),
        };
        seen(&self.connection.query(&sql)?)
    }
}
