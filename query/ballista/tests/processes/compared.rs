//! Compares the output of `larch sql` for a list of queries with the answers of DataFusion, which runs in this
//! process on rows in memory.

use datafusion::arrow::csv::WriterBuilder;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use os::sync::Arc;
use tokio::runtime::Runtime;

/// DataFusion's answers, without Larch or Ballista: for each query, its rows as sorted text. A query may consist of
/// several statements.
pub fn expected<'t>(tables: impl Iterator<Item = (&'t str, MemTable)>, queries: &[String]) -> Vec<Vec<String>> {
    let context = SessionContext::new();
    for (name, table) in tables {
        context.register_table(name, Arc::new(table)).expect("the name is free");
    }
    let runtime = Runtime::new().expect("threads");
    let answer = |query: &String| {
        let mut text = Vec::new();
        for statement in query.split(';') {
            let batches = runtime.block_on(async { context.sql(statement).await?.collect().await });
            let batches = batches.unwrap_or_else(|error| panic!("{statement}: {error}"));
            let mut writer = WriterBuilder::new().with_header(false).build(&mut text);
            batches.iter().for_each(|batch| writer.write(batch).expect("it is text"));
        }
        sorted(std::str::from_utf8(&text).expect("it is text").lines())
    };
    queries.iter().map(answer).collect()
}

/// Statements that declare tables and then ask queries, each preceded by its number.
pub fn script(declared: &str, settings: &str, queries: &[String]) -> String {
    let queries = queries.iter().enumerate().map(|(at, query)| format!("SELECT {at} AS query;\n{query};\n"));
    format!("{declared}{settings}{}", queries.collect::<String>())
}

/// Compares the output of a script with the expected answers. `told` says how the queries were asked, for messages.
#[track_caller]
pub fn compare(told: &str, queries: &[String], expected: &[Vec<String>], printed: &str) {
    // An answer comes after its number, and begins with the names of its columns.
    let answers: Vec<_> = printed.split("query\n").skip(1).map(|answer| sorted(answer.lines().skip(2))).collect();
    assert_eq!(answers.len(), expected.len(), "{told}");
    let wrong = |((query, answer), expected): ((&String, &Vec<String>), &Vec<String>)| {
        let shown = |rows: &[String]| rows.iter().take(3).cloned().collect::<Vec<_>>();
        let (few, many) = (shown(answer), shown(expected));
        let counts = (answer.len(), expected.len());
        (answer != expected).then(|| format!("{query}: {counts:?} rows, {few:?} for {many:?}"))
    };
    let wrong: Vec<String> = queries.iter().zip(&answers).zip(expected).filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{told}: {} of {}:\n{}", wrong.len(), queries.len(), wrong.join("\n"));
}

fn sorted<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<String> {
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}
