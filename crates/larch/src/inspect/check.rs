//! Reading everything and comparing it: every byte of every file, files with the manifest, levels with their order.

use super::problem::Problem;
use crate::cancel::Limit;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::manifest::{TableFiles, TableInfo};
use crate::read::ahead::ahead_bytes;
use os::sync::Arc;
use pages::{Admit, PageAt, PageRef, PageSource, Reason, Session, Stop};
use sst::format::meta::MAX_BOUND_BYTES;
use sst::{KeyBounds, successor};
use std::io::ErrorKind;

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// Bytes checked.
    pub done_bytes: u64,
    /// Bytes to check.
    pub total_bytes: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Files read.
    pub files: u64,
    /// Pages read.
    pub pages: u64,
    /// Rows read, older versions not counted.
    pub rows: u64,
    /// Bytes read.
    pub bytes: u64,
    /// What is wrong; empty if nothing is. One entry a file at most, each naming file, page and offset.
    pub problems: Vec<Problem>,
}

/// Checks one table, or all, until `limit` says otherwise.
pub fn check(
    core: &Arc<Core>,
    table: Option<&TableInfo>,
    limit: &Limit,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport> {
    let (view, at) = core.views.now();
    let tables: Vec<&TableFiles> = match table {
        Some(table) => vec![view.files_of(table)?],
        None => view.files.tables.values().collect(),
    };
    let total_bytes = tables.iter().flat_map(|table| table.files()).map(|(_, file)| file.bytes()).sum();
    let mut report = CheckReport::default();
    for table in tables {
        check_order(table, &mut report);
        for (_, file) in table.files() {
            if core.background.is_closing() {
                return Ok(report);
            }
            let done_before = report.bytes;
            let tell = &mut |done: u64| progress(CheckProgress { done_bytes: done_before + done, total_bytes });
            // A session of its own for each file: one that failed is not asked again.
            let session = Session::new(&core.env.cache, Reason::Check, Admit::Pass)
                .with_ahead_bytes(ahead_bytes(&core.env.cache));
            let source = Limited { session: &session, limit };
            let found = sst::verify(&file.sst, &source, &*file.sst.file.around_cache(), tell);
            // What went wrong after that is that it was given up.
            limit.check("the check")?;
            report.files += 1;
            report.bytes += file.bytes();
            match found {
                Ok(found) => {
                    report.pages += found.all_pages().pages;
                    report.rows += found.rows;
                }
                Err(error) => match core.outdated(error.into(), at) {
                    outdated @ Error::Outdated { .. } => return Err(outdated),
                    error => {
                        let (table, file) = (table.info.name.clone(), file.path().to_owned());
                        report.problems.push(Problem { table, file, error });
                    }
                },
            }
            progress(CheckProgress { done_bytes: report.bytes, total_bytes });
        }
    }
    Ok(report)
}

/// A session that gives no page any more once the work is to be given up.
struct Limited<'a> {
    session: &'a Session,
    limit: &'a Limit,
}

impl PageSource for Limited<'_> {
    fn page(&self, at: PageAt<'_>) -> std::result::Result<PageRef, Stop> {
        if self.limit.is_over() {
            return Err(pages::Error::io("check", at.file.path(), ErrorKind::Interrupted.into()).into());
        }
        self.session.page(at)
    }

    pages::pass_on!(session: peek, glance, ahead, ahead_bytes, fetch, take_read, release);
}

/// Files of a sorted level lie one after the other.
fn check_order(table: &TableFiles, report: &mut CheckReport) {
    for (level, files) in table.levels.iter().enumerate().skip(1) {
        for pair in files.windows(2) {
            let (a, b) = (pair[0].sst.bounds(), pair[1].sst.bounds());
            if a.high.as_deref().is_none_or(|high| high > b.low.as_slice()) && !is_cut_tie(a, b) {
                let why = format!("it overlaps {} in level {level}", pair[1].path().display());
                let error = pages::Error::Corrupt { file: pair[0].path().to_owned(), page: "manifest", offset: 0, why };
                let (table, file) = (table.info.name.clone(), pair[0].path().to_owned());
                report.problems.push(Problem { table, file, error: error.into() });
            }
        }
    }
}

/// Whether `a` ends and `b` begins with the same bytes as far as bounds go: the keys themselves are longer.
fn is_cut_tie(a: &KeyBounds, b: &KeyBounds) -> bool {
    b.low.len() == MAX_BOUND_BYTES && a.high == successor(&b.low)
}
