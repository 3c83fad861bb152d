//! A short way to the next rows of a range: if all pages that they need are in memory, they are found under a guard,
//! without a place, a merge, a session's pages or an entry in the registry of ranges. The guard is let go as soon as
//! the rows are found, and the range follows them in their pages. Rows of a long range come from a merge, which reads
//! ahead: a range uses the short way only for its first pages.

use super::followed::{Followed, Second};
use super::rest::Rest;
use crate::read::row::RowLoader;
use crate::view::ends::{PLACES_SHARE, is_crowded};
use crate::view::follow::Following;
use crate::view::next_rows::{NextRows, next_rows};
use os::sync::hazard::Lease;
use pages::{Admit, Guard, PageLender, Waits};
use sst::Direction;

/// What a look under a guard has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// The next row, which is followed from now on.
    Row,
    /// The range has no more rows.
    Nothing,
    /// Only a merge can find the next row.
    Unknown,
}

impl Followed {
    /// Looks for the next rows in `direction` under a guard, if the range may do so. The range must not have a merge.
    #[inline]
    pub fn look(&mut self, loader: &RowLoader, rest: &mut Rest, direction: Direction) -> Looked {
        if !self.looks.take_one() {
            return Looked::Unknown;
        }
        let is_plain = loader.session.admit() == Admit::Keep
            && loader.own.is_none()
            && !loader.wanted.set().any_beside_main()
            && !is_crowded(loader.session.cache(), self.pins.bytes(), PLACES_SHARE);
        let looked = if is_plain {
            self.stop(rest);
            let spare = self.spare.take();
            Lease::with(|lease| find(loader, rest, direction, spare, lease)).flatten()
        } else {
            None
        };
        match looked {
            Some(NextRows::Rows(rows)) => {
                self.looks.found();
                self.second = Second::Passed;
                self.set(Some(rows));
                Looked::Row
            }
            Some(NextRows::Nothing(spare)) => {
                self.spare = Some(spare);
                self.looks.found();
                Looked::Nothing
            }
            Some(NextRows::Unknown(spare)) => {
                self.spare = Some(spare);
                self.looks.missed();
                Looked::Unknown
            }
            None => {
                self.looks.missed();
                Looked::Unknown
            }
        }
    }
}

/// Looks for the next rows. `None` if there are none in the pages and the view that can be borrowed. Then it leaves no
/// trace, as if the merge that has to look had been asked at once.
fn find(
    loader: &RowLoader,
    rest: &Rest,
    direction: Direction,
    spare: Option<Following>,
    lease: &Lease,
) -> Option<NextRows> {
    let (view, at) = loader.handle.core().views.borrow(Some(&loader.pin), lease)?;
    let guard = Guard::new(loader.session.cache(), lease)?;
    let table = view.table(&loader.table, at).ok()?;
    let bounds = direction.near_far(rest.bounds());
    let mut found = next_rows(&guard, table, bounds, direction, spare);
    let is_known = match &mut found {
        NextRows::Rows(rows) => rows.next(),
        NextRows::Nothing(_) => true,
        NextRows::Unknown(_) => false,
    };
    if !is_known {
        let (NextRows::Rows(rows) | NextRows::Nothing(rows) | NextRows::Unknown(rows)) = found;
        return Some(NextRows::Unknown(rows.clear()));
    }
    let session = &loader.session;
    if session.notes().is_some() {
        // The session finds the same pages, and notes them.
        session.set_waits(Waits::Never);
        drop(next_rows(session, table, bounds, direction, None));
        session.set_waits(Waits::Now);
        session.release();
    } else {
        guard.count_hits_of_scan();
        if let NextRows::Rows(rows) = &found {
            rows.pages().for_each(|page| guard.note_all(page));
        }
    }
    Some(found)
}
