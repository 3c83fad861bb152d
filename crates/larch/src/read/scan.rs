//! Iterating over a range of keys without a thread that waits for pages. It knows no executor: whoever polls is woken.
//!
//! A row counts as given when a future or a stream has given it: one that is dropped half done takes none along, and leaves
//! nothing pinned and nothing on its way.

use super::range::{PartRange, Range, Rows};
use super::{Key, Parts, Value};
use crate::error::Result;
use futures_core::Stream;
use pages::Session;
use sst::Direction;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Rows of a key range in order, as of one version, for futures; made by [`Table::scan_async`](crate::Table::scan_async), or
/// of any [`Range`]. From both ends; yields `Result` and stays failed after an error. Reads ahead as a range does.
///
/// It is a [`Stream`], too, of the rows from the front.
///
/// ```
/// # fn main() -> larch::Result<()> { smol::block_on(async {
/// # let db = larch::Database::open(larch::doc::directory("scan"))?;
/// # let fruit = db.table("fruit")?;
/// for name in ["apple", "banana", "cherry"] {
///     fruit.insert(name, "ripe")?;
/// }
/// let snapshot = db.snapshot();
/// let mut rows = larch::Scan::from(larch::Readable::range(&snapshot, &fruit, "b"..));
/// while let Some(row) = rows.next_back().await {
///     let (key, value) = row?;
///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
/// }
/// # Ok(()) }) }
/// ```
#[must_use = "a scan reads nothing until it is polled"]
pub struct Scan(Rows);

/// As [`Scan`], with some parts of the rows; made by [`Selection::scan_async`](crate::Selection::scan_async), or of any
/// [`PartRange`].
#[must_use = "a scan reads nothing until it is polled"]
pub struct PartScan(Rows);

/// What waits for a row. Once it is gone nobody does.
struct Waiting<'r>(&'r mut Rows);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

macro_rules! scan {
    ($scan:ident, $range:ident, $item:ty, $with:ident) => {
        impl $scan {
            /// At most `rows` of the rows, from both ends together, see
            #[doc = concat!("[`", stringify!($range), "::limit`].")]
            pub fn limit(self, rows: u64) -> Self {
                Self(self.0.limit(rows))
            }

            /// The next row from the front.
            pub async fn next(&mut self) -> Option<Result<(Key, $item)>> {
                self.wait(Direction::Forward).await
            }

            /// The next row from the back.
            pub async fn next_back(&mut self) -> Option<Result<(Key, $item)>> {
                self.wait(Direction::Backward).await
            }

            async fn wait(&mut self, direction: Direction) -> Option<Result<(Key, $item)>> {
                let waiting = Waiting(&mut self.0);
                poll_fn(|context| waiting.0.poll(context, direction, |row| row.$with())).await.transpose()
            }
        }

        impl Stream for $scan {
            type Item = Result<(Key, $item)>;

            fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
                self.0.poll(context, Direction::Forward, |row| row.$with()).map(Result::transpose)
            }
        }

        impl From<$range> for $scan {
            fn from(range: $range) -> Self {
                Self(range.into_rows())
            }
        }

        /// What is left of it, for a thread that waits.
        impl From<$scan> for $range {
            fn from(mut scan: $scan) -> Self {
                scan.0.abandon();
                Self::new(scan.0)
            }
        }

        impl fmt::Debug for $scan {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.describe(stringify!($scan), f)
            }
        }
    };
}

scan!(Scan, Range, Value, with_value);
scan!(PartScan, PartRange, Parts, with_parts);

const _: () = {
    const fn sent<T: Send>() {}
    sent::<Session>();
    sent::<Scan>();
    sent::<PartScan>();
};
