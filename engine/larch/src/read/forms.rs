//! The three forms of a look-up in one table: it blocks for pages, it only tries the pages in memory, or it is a
//! future. Each form takes the view that the look-up will see, opens a session and runs the steps of the look-up. If
//! a writer in another process has removed a file of that view, the look-up is [tried again](super::again). This
//! module does not know where rows lie.

use super::again::Again;
use super::content::Content;
use super::multi::{AnswerBytes, MultiRead};
use crate::base::error::Result;
use crate::core::handle::TableHandle;
use crate::core::snapshots::PinnedVersion;
use crate::manifest::DbFile;
use crate::view::TableView;
use crate::view::found::FoundRow;
use crate::view::own_writes::OwnRows;
use crate::view::part_list::PartList;
use crate::view::point::PointRead;
use os::sync::Arc;
use os::sync::hazard::Lease;
use pages::{Admit, Guard, LentPage, PageCache, PageSource, Reason, Session, Stop, Waits, retry, retry_async};
use sst::Version;
use std::marker::PhantomData;

/// The result of a read that never reads from disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried<T> {
    /// The answer. All pages that the read needed were in memory.
    Ready(T),
    /// A page is not in memory. The blocking form and the future would load it.
    WouldFault,
}

impl<T> Tried<T> {
    /// The answer, if there is one.
    pub fn ready(self) -> Option<T> {
        match self {
            Self::Ready(answer) => Some(answer),
            Self::WouldFault => None,
        }
    }

    /// Whether a page is not in memory.
    pub fn would_fault(&self) -> bool {
        matches!(self, Self::WouldFault)
    }

    /// Applies `change` to the answer, if there is one.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Tried<U> {
        match self {
            Self::Ready(answer) => Tried::Ready(change(answer)),
            Self::WouldFault => Tried::WouldFault,
        }
    }

    /// Turns the outcome of a step into the result of a try form.
    pub(crate) fn of(outcome: Result<T, Stop>) -> Result<Self> {
        match outcome {
            Ok(answer) => Ok(Self::Ready(answer)),
            Err(Stop::Fault) => Ok(Self::WouldFault),
            Err(Stop::Failed(error)) => Err((*error).into()),
        }
    }
}

/// What a look-up asks for: something about the row of one key, or the rows of many keys.
pub(super) trait Question {
    /// The answer.
    type Answer;
    /// The search for the answer in one view.
    type Search<'v>
    where
        Self: 'v;

    /// A search that has read nothing yet.
    fn search<'v>(&'v self, table: TableView<'v>, cache: &PageCache) -> Self::Search<'v>;

    /// Runs `search` until it has the answer. A step.
    fn step(&self, search: &mut Self::Search<'_>, session: &Session) -> Result<Self::Answer, Stop>;
}

/// A question about the row of one key. `read` answers it; it is a step.
pub(super) struct OneKey<'k, F> {
    pub key: &'k [u8],
    /// The transaction's own rows, if it may have written to the key.
    pub own: Option<OwnRows>,
    pub read: F,
    /// How far a search in memory alone has come, if it had to end.
    pub begun: Option<Begun>,
}

/// The outcome of a search in memory alone.
enum Looked<T> {
    Answer(T),
    /// It had to end. `None` if a search has to begin anew.
    Begun(Option<Begun>),
}

/// How far a search has come in a view that it has only borrowed.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    generation: u64,
    at: Version,
    silent: usize,
}

impl<T, F: Fn(&mut PointRead<'_, '_>, &Session) -> Result<T, Stop>> Question for OneKey<'_, F> {
    type Answer = T;
    type Search<'v>
        = PointRead<'v, 'v>
    where
        Self: 'v;

    #[inline]
    fn search<'v>(&'v self, table: TableView<'v>, _: &PageCache) -> PointRead<'v, 'v> {
        let search = PointRead::new(table.under(self.own.as_ref()), self.key);
        match self.begun {
            Some(Begun { generation, at, silent }) if (table.view.generation, table.at) == (generation, at) => {
                search.after(silent)
            }
            _ => search,
        }
    }

    #[inline]
    fn step(&self, search: &mut PointRead<'_, '_>, session: &Session) -> Result<T, Stop> {
        (self.read)(search, session)
    }
}

/// The content of the row that `search` looks for. A step.
#[inline]
pub(crate) fn content_of<V: Content, S: PageSource + ?Sized>(
    search: &mut PointRead<'_, '_>,
    source: &S,
    cache: &PageCache,
    wanted: &PartList,
) -> Result<Option<V>, Stop> {
    search.load(source, V::needs_more, |row| V::load_found(row, source, cache, wanted))
}

/// The rows of many keys, in the order of the keys.
pub(super) struct ManyKeys<'k, K, V> {
    pub keys: &'k [K],
    pub own: Option<&'k OwnRows>,
    pub wanted: &'k PartList,
    /// The most bytes of answers.
    pub most: AnswerBytes,
    pub content: PhantomData<fn() -> V>,
}

impl<K: AsRef<[u8]>, V: Content> Question for ManyKeys<'_, K, V> {
    type Answer = Vec<Option<V>>;
    type Search<'v>
        = MultiRead<'v, 'v, K, V>
    where
        Self: 'v;

    fn search<'v>(&'v self, table: TableView<'v>, cache: &PageCache) -> MultiRead<'v, 'v, K, V> {
        MultiRead::new(table.under(self.own), self.keys, (self.wanted, self.most), cache)
    }

    fn step(&self, search: &mut MultiRead<'_, '_, K, V>, session: &Session) -> Result<Vec<Option<V>>, Stop> {
        search.get(session, session.cache())
    }
}

/// A table and the version to read it at.
#[derive(Clone, Copy)]
pub(super) struct ReadAt<'r> {
    pub table: &'r TableHandle,
    /// Pins the version. If `None`, each look-up reads the newest version.
    pub pin: Option<&'r Arc<PinnedVersion>>,
}

impl ReadAt<'_> {
    /// Runs `read` on the table as it is now, or as it was at the pinned version. Retries it while a writer removes
    /// files.
    pub fn look<T>(&self, read: impl Fn(TableView<'_>) -> Result<T>) -> Result<T> {
        let Self { table, pin } = *self;
        let mut again = Again::new(table.core(), pin);
        loop {
            let (view, at) = again.view();
            match read(view.table(&table.identity, at)?) {
                Err(error) => again.after(error, at)?,
                done => return done,
            }
        }
    }

    /// Answers `question` by `lend` from memory alone if that is possible, and otherwise blocks for pages.
    #[inline]
    pub fn lend_or_wait<T, F>(
        &self,
        mut question: OneKey<'_, F>,
        lend: impl FnOnce(Option<FoundRow<&DbFile, LentPage<'_>>>, &PageCache) -> Option<T>,
    ) -> Result<T>
    where
        F: Fn(&mut PointRead<'_, '_>, &Session) -> Result<T, Stop>,
    {
        if self.table.admit == Admit::Keep {
            match Lease::with(|lease| self.look_in_memory(&question, lease, lend)) {
                Some(Looked::Answer(answer)) => return Ok(answer),
                Some(Looked::Begun(begun)) => question.begun = begun,
                None => {}
            }
        }
        self.wait(&question)
    }

    /// Looks up the key of `question` in memory, and calls `lend` with the row that it finds. It borrows the view and all
    /// pages, so it changes no counter that threads share. If a page is missing or damaged, or if `lend` has no answer,
    /// the result says how far the search has come: the search for `question` goes on from there, unless a newer version
    /// is visible by then.
    #[inline]
    fn look_in_memory<T, F>(
        &self,
        question: &OneKey<'_, F>,
        lease: &Lease,
        lend: impl FnOnce(Option<FoundRow<&DbFile, LentPage<'_>>>, &PageCache) -> Option<T>,
    ) -> Looked<T> {
        let Self { table, pin } = *self;
        let core = table.core();
        let Some((view, at)) = core.views.borrow(pin.map(|pin| &**pin), lease) else { return Looked::Begun(None) };
        let Some(guard) = Guard::new(&core.env.cache, lease) else { return Looked::Begun(None) };
        let Ok(table) = view.table(&table.identity, at) else { return Looked::Begun(None) };
        let mut search = PointRead::new(table.under(question.own.as_ref()), question.key);
        match search.find_lent(&guard).ok().and_then(|found| lend(found, guard.cache())) {
            Some(answer) => {
                guard.count_hits();
                Looked::Answer(answer)
            }
            None => {
                let begun = Begun { generation: view.generation, at, silent: search.silent() };
                Looked::Begun(core.views.has_generations().then_some(begun))
            }
        }
    }

    /// Answers `question`, and blocks for pages.
    #[inline]
    pub fn wait<Q: Question>(&self, question: &Q) -> Result<Q::Answer> {
        self.look(|table| {
            let session = self.table.session(Reason::Point);
            let mut search = question.search(table, session.cache());
            Ok(retry(&session, || question.step(&mut search, &session))?)
        })
    }

    /// Answers `question` if all pages that it needs are in memory.
    pub fn try_now<Q: Question>(&self, question: &Q) -> Result<Tried<Q::Answer>> {
        self.look(|table| {
            let session = self.table.session(Reason::Point);
            session.set_waits(Waits::Never);
            Tried::of(question.step(&mut question.search(table, session.cache()), &session))
        })
    }
}

/// Answers `$question` at `$at`, as a future. It is no generic function, because the compiler cannot prove that a
/// future over any `Search` is [`Send`].
macro_rules! wait_async {
    ($at:expr, $question:expr) => {{
        let (ReadAt { table, pin }, question) = ($at, $question);
        let mut again = Again::new(table.core(), pin);
        loop {
            let (view, at) = again.view();
            let mut session = table.session(Reason::Point);
            let mut search = question.search(view.table(&table.identity, at)?, session.cache());
            match retry_async(&mut session, |session| question.step(&mut search, session)).await {
                Ok(answer) => return Ok(answer),
                Err(error) => again.after(error.into(), at)?,
            }
        }
    }};
}

impl ReadAt<'_> {
    /// Answers `question`, as a future.
    pub async fn wait_for_key<T, F>(self, question: OneKey<'_, F>) -> Result<T>
    where
        F: Fn(&mut PointRead<'_, '_>, &Session) -> Result<T, Stop>,
    {
        wait_async!(self, question)
    }

    /// Answers `question`, as a future.
    pub async fn wait_for_keys<K: AsRef<[u8]>, V: Content>(
        self,
        question: ManyKeys<'_, K, V>,
    ) -> Result<Vec<Option<V>>> {
        wait_async!(self, question)
    }
}
