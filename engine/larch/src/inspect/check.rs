//! Checks a database: reads every byte of every file, compares the files with the manifest, and verifies that the
//! files of a level do not overlap. This module does not know how the bytes of a file are laid out.

use crate::base::error::{Error, Result};
use crate::base::table::TableInfo;
use crate::base::watch::Watch;
use crate::core::Core;
use crate::core::background::problem::Problem;
use crate::core::environment::Environment;
use crate::manifest::TableFiles;
use crate::view::ahead;
use os::sync::Arc;
use pages::{Admit, PageAt, PageLender, PageRef, PageSource, Reason, Session, Stop};
use sst::{FileReport, Sst};
use std::io::ErrorKind;

/// The name of this work in [`Error::Cancelled`].
pub const WORK: &str = "the check";

/// The result of a check.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CheckReport {
    /// Files that were read.
    pub files: u64,
    /// Pages that were read.
    pub pages: u64,
    /// Rows that were read, without older versions.
    pub rows: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// The problems that were found; empty if nothing is wrong. Each names the file, the page and its offset. The
    /// rest of a file is not checked after its first problem.
    pub problems: Vec<Problem>,
}

/// Checks one table, or all tables if `table` is `None`. `watch` is called with the number of bytes checked so
/// far, and may end the check. Damage is not an error: the report lists it.
///
/// # Errors
///
/// [`Error::TableDropped`] if the table was dropped; [`Error::Outdated`] in a database opened read-only, if the
/// writer has removed a file; [`Error::Cancelled`] if `watch` ends the check.
pub fn check(core: &Arc<Core>, table: Option<&TableInfo>, watch: &Watch<'_>) -> Result<CheckReport> {
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
            let tell = &mut |done: u64| {
                watch.tell(done_before + done, total_bytes);
            };
            let found = check_file(&core.env, &file.sst, watch, tell)?;
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
            watch.tell(report.bytes, total_bytes);
        }
    }
    Ok(report)
}

/// Checks one file, and tells `tell` how many bytes were read. The inner result is an error if the file is damaged or
/// cannot be read.
///
/// # Errors
///
/// [`Error::Cancelled`] if `watch` ends the check.
pub fn check_file(
    env: &Environment,
    sst: &Sst,
    watch: &Watch<'_>,
    tell: &mut dyn FnMut(u64),
) -> Result<Result<FileReport, pages::Error>> {
    // Each file gets a new session, because a session cannot be used after an error.
    let session = ahead::session(&env.cache, &*env.machine.reads, Reason::Check, Admit::Pass);
    let source = Watched { session: &session, watch };
    let found = sst::verify(sst, &source, &*sst.file.around_cache(), tell);
    // If `watch` has ended the check, `found` is only a consequence.
    watch.check()?;
    Ok(found)
}

/// A session that fails to return pages once `watch` has ended the check.
struct Watched<'a, 'w> {
    session: &'a Session,
    watch: &'a Watch<'w>,
}

impl PageLender for Watched<'_, '_> {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> std::result::Result<PageRef, Stop> {
        if self.watch.is_over() {
            return Err(pages::Error::io("check", at.file.path(), ErrorKind::Interrupted.into()).into());
        }
        self.session.page(at)
    }

    pages::pass_on!(session: peek, ahead, ahead_if_spare, take_read, release);
}

impl PageSource for Watched<'_, '_> {
    pages::pass_on!(session: glance, ahead_bytes, fetch);
}

/// Checks that the files of each level, except level 0, do not overlap.
fn check_order(table: &TableFiles, report: &mut CheckReport) {
    for (level, files) in table.levels.iter().enumerate().skip(1) {
        for pair in files.windows(2) {
            let (a, b) = (pair[0].sst.bounds(), pair[1].sst.bounds());
            if !a.is_before(b) {
                let why = format!("it overlaps {} in level {level}", pair[1].path().display());
                let error = pages::Error::Corrupt { file: pair[0].path().to_owned(), page: "manifest", offset: 0, why };
                let (table, file) = (table.info.name.clone(), pair[0].path().to_owned());
                report.problems.push(Problem { table, file, error: error.into() });
            }
        }
    }
}
