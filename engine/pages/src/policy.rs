//! The eviction policy: which pages stay in memory and which are evicted. It knows pages only by the names that
//! their owner gives them, takes no lock, and reads neither a clock nor the bytes of a page.
//!
//! The policy is of the S3-FIFO family (Yang and others, SOSP 2023): pages stand in several FIFO lines, and a hit
//! moves nothing. The owner counts the uses of each page, up to three, and passes the count on when the policy
//! looks at the page.
//!
//! ```text
//!   data  ──> newcomers ──used twice─────────────────> proven ──unused──> gone
//!                 └──unused──> gone, remembered        ^  │ used: to the end again, with a chance less
//!   index ──> newcomers ──> stayed ──used since──────> ├──┘
//!                              └──unused──> gone, remembered
//!   ahead ──> a line of its own ──used three times───> ┘
//!                 └──used for what it was read for, or not in two looks──> gone
//!   remembered, and asked for again ─────────────────> proven
//!   kept at the owner's wish: goes when there is nothing else
//! ```
//!
//! * A page is a *newcomer* when it was admitted recently, and *proven* once it was used again since then (decision
//!   18). A *kept* page belongs to a table that is to stay in memory; it is evicted only if no other page can be.
//!   The owner limits the kept pages to a share of the cache.
//! * The policy looks at the oldest page of a line. Each look moves that page to the end of a line or evicts it.
//!   [`Policy::evict`] looks at no more pages than its caller allows. If the rules below evict none of them, the
//!   call evicts the page that comes closest. If all of them are pinned, it returns `None`.
//! * A pinned page is passed over and keeps its standing. The search goes on in another line, so that pinned pages
//!   in one line do not hide evictable pages in the others.
//! * However long a scan is, its pages stay among the newcomers and push out nothing but newcomers. A scan uses its
//!   nodes often, but within a short time. So a node must be used after it has stayed for a while to be worth
//!   keeping.
//! * Index pages wait in lines of their own, which have a larger share: one index page leads to a hundred data
//!   pages, so its next use comes later than that of a data page. Index pages that are not used are evicted.
//! * Data pages that were read ahead wait for their use in a line of their own, however many other pages are missed
//!   meanwhile. After their use they are the first to be evicted, and they are not remembered, so that reading them
//!   ahead again does not make them proven. Nodes that were read ahead are newcomers, and are evicted if they are
//!   still unused when the policy looks at them.
//! * Memory: a page takes a node of 20 bytes and the owner's name for it, together 24 bytes for a `u32`. At most a
//!   fifth of this memory is spare. Each remembered page takes 8 bytes, with room for a quarter more of them than
//!   pages are resident. At worst, this is 40 bytes per resident page. The memory grows in steps, and is freed when
//!   the policy is dropped.
//!
//! Not thread safe: the cache has a lock around the policy.

mod ghost;

use ghost::Ghost;

/// How valuable a page is to other reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Index nodes, filters and range erases, each of which serves many data pages.
    Index,
    /// Everything else.
    Data,
}

/// The owner's answer when the policy looks at a page and asks how it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The page cannot be evicted now. The owner did not reset its use count.
    Pinned,
    /// How often the page was used since the last look; 3 stands for 3 or more. The owner has reset the count.
    Times(u8),
    /// The page was used, but for so few of its bytes that the owner keeps these elsewhere. The page goes.
    ForFewBytes,
}

/// A resident page's place in the policy, by which it is changed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyPlace(pub(crate) u32);

/// Totals since the policy was made. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyCounts {
    /// Pages that were admitted.
    pub admitted: u64,
    /// Admitted pages that the policy still remembered.
    pub remembered: u64,
    /// Newcomers that became proven by their uses.
    pub promoted: u64,
    /// Pages that [`Policy::evict`] has evicted.
    pub evicted: u64,
    /// Pages looked at.
    pub looks: u64,
    /// Looks that met a pinned page.
    pub pinned: u64,
}

/// The policy's tuning parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Above this percentage of all bytes, data pages that were read ahead are evicted first.
    pub ahead_percent: u64,
    /// Above this percentage of all bytes, data newcomers are evicted next.
    pub data_percent: u64,
    /// The percentage for index pages: half of it for index newcomers, half for index pages that have stayed for a
    /// while.
    pub index_percent: u64,
    /// How many uses prove a data newcomer.
    pub data_uses: u8,
    /// The most chances that a proven page can collect.
    pub chances: u8,
}

impl Tuning {
    /// What the cache uses. A scan reads ahead at most an eighth of the cache. Proven pages have no percentage of
    /// their own: while scans go on, the remaining 60 % are theirs. The other numbers were found with `larch bench
    /// cache-trace`.
    pub const DEFAULT: Self = Self { ahead_percent: 15, data_percent: 5, index_percent: 20, data_uses: 2, chances: 3 };
}

/// Decides which pages stay and which are evicted. `T` is the owner's name for a page.
pub struct Policy<T> {
    nodes: Vec<PolicyNode<T>>,
    /// The first free place. Free places are linked by `newer`.
    free: u32,
    lines: [PolicyLine; LINES],
    pages: usize,
    kept_pages: usize,
    ghost: Ghost,
    tuning: Tuning,
    counts: PolicyCounts,
}

/// A page, or a free place.
struct PolicyNode<T> {
    page: T,
    hash: u32,
    bytes: u32,
    newer: u32,
    older: u32,
    class: Class,
    standing: Standing,
    chances: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Read ahead. The first use is expected, so it alone does not prove the page.
    Ahead,
    /// A newcomer. All its uses may come from one step.
    Asked,
    /// An index page that has stayed for a while, so that further uses come from a later step; or a data page that
    /// was read ahead and not used before the policy's first look.
    Stayed,
    Proven,
    /// The owner wants the page to stay.
    Kept,
}

/// Pages from the oldest to the newest.
struct PolicyLine {
    oldest: u32,
    newest: u32,
    bytes: u64,
}

/// What happens to a page after a look.
enum EvictionVerdict {
    Goes { remembered: bool },
    Stays { standing: Standing, chances: u8 },
}

const NEWCOMERS: usize = 0;
const AHEAD: usize = 1;
const INDEX_NEWCOMERS: usize = 2;
const INDEX_STAYED: usize = 3;
const PROVEN: usize = 4;
/// The number of lines for pages that are not kept. A kept page is evicted only when all pages in these lines are
/// gone or pinned.
const OPEN_LINES: usize = 5;
const KEPT_DATA: usize = 5;
const KEPT_INDEX: usize = 6;
const LINES: usize = 7;

/// While pages that were read ahead are within their share, one of 16 looks is at one of them, so that the pages of
/// a finished scan make room after a while.
const AHEAD_LOOKS: u64 = 16;

/// While data and index pages both exceed their shares, one of 8 looks is at an index page. So unused nodes are
/// evicted, but slowly: in a cache that is filling, most nodes had no time to be used.
const INDEX_LOOKS: u64 = 8;

/// The end of a list.
const NONE: u32 = u32::MAX;

impl<T: Copy> Policy<T> {
    /// An empty policy.
    pub fn new(tuning: Tuning) -> Self {
        Self {
            nodes: Vec::new(),
            free: NONE,
            lines: [const { PolicyLine { oldest: NONE, newest: NONE, bytes: 0 } }; LINES],
            pages: 0,
            kept_pages: 0,
            ghost: Ghost::default(),
            tuning,
            counts: PolicyCounts::default(),
        }
    }

    /// Admits a page. `key` is the hash by which the page is remembered after its eviction. `asked` is true if a
    /// step needs the page, and false if it was read ahead.
    ///
    /// # Panics
    ///
    /// Panics if the page has 4 GiB or more, or if the policy has four billion pages.
    pub fn admit(&mut self, page: T, key: u64, class: Class, bytes: u64, asked: bool) -> PolicyPlace {
        let hash = (key ^ (key >> 32)) as u32;
        let bytes = u32::try_from(bytes).expect("a page is shorter than 4 GiB");
        let standing = match asked {
            false => Standing::Ahead,
            true if self.ghost.take(hash, self.pages) => {
                self.counts.remembered += 1;
                Standing::Proven
            }
            true => Standing::Asked,
        };
        let node = PolicyNode { page, hash, bytes, newer: NONE, older: NONE, class, standing, chances: 0 };
        let place = self.take_place(node);
        self.push(place);
        self.pages += 1;
        self.counts.admitted += 1;
        PolicyPlace(place)
    }

    /// Makes a page proven, with `chances` chances. For pages that the owner knows to be wanted, although the
    /// policy has seen no use of them. A kept page stays kept.
    pub fn prove(&mut self, place: PolicyPlace, chances: u8) {
        if self.is_kept(place) {
            return;
        }
        self.unlink(place.0);
        let node = &mut self.nodes[place.0 as usize];
        let before = if node.standing == Standing::Proven { node.chances } else { 0 };
        node.chances = chances.max(before).min(self.tuning.chances);
        node.standing = Standing::Proven;
        self.push(place.0);
    }

    /// Keeps a page from now on, as long as other pages can be evicted. The owner must limit the number of kept
    /// pages.
    pub fn keep(&mut self, place: PolicyPlace) {
        self.change_standing(place.0, Standing::Kept);
    }

    /// Makes a kept page proven.
    pub fn keep_no_more(&mut self, place: PolicyPlace) {
        if self.is_kept(place) {
            self.change_standing(place.0, Standing::Proven);
        }
    }

    /// Whether a page is kept.
    pub fn is_kept(&self, place: PolicyPlace) -> bool {
        self.nodes[place.0 as usize].standing == Standing::Kept
    }

    /// Makes the oldest kept page of a class proven, and returns its bytes; `None` if the class has no kept page.
    pub fn keep_less(&mut self, class: Class) -> Option<u64> {
        let line = match class {
            Class::Data => KEPT_DATA,
            Class::Index => KEPT_INDEX,
        };
        let oldest = self.lines[line].oldest;
        if oldest == NONE {
            return None;
        }
        self.change_standing(oldest, Standing::Proven);
        Some(u64::from(self.nodes[oldest as usize].bytes))
    }

    /// Bytes of the kept pages.
    pub fn kept_bytes(&self) -> u64 {
        self.lines[KEPT_DATA].bytes + self.lines[KEPT_INDEX].bytes
    }

    fn change_standing(&mut self, place: u32, standing: Standing) {
        self.unlink(place);
        let node = &mut self.nodes[place as usize];
        (node.standing, node.chances) = (standing, 0);
        self.push(place);
    }

    /// How many chances a proven page has left. A kept page has all of them; other pages have `None`.
    pub fn chances(&self, place: PolicyPlace) -> Option<u8> {
        let node = &self.nodes[place.0 as usize];
        match node.standing {
            Standing::Proven => Some(node.chances),
            Standing::Kept => Some(self.tuning.chances),
            _ => None,
        }
    }

    /// Forgets a page that the owner has removed for a reason of its own. The page is not remembered.
    pub fn remove(&mut self, place: PolicyPlace) {
        self.take_out(place.0);
    }

    /// Evicts a page, and returns it with its bytes. The call looks at no more than `look` pages. It tells `uses` of
    /// each whether it is proven, and asks how often it was used. `None` if all of them were pinned, or if the policy
    /// has no pages.
    pub fn evict(&mut self, look: usize, mut uses: impl FnMut(T, bool) -> Use) -> Option<(T, u64)> {
        let mut coldest: Option<(u8, u32)> = None;
        let mut pinned = 0;
        // If the oldest pages of all lines are pinned, the lines take turns. This many looks reach every page of
        // every line.
        for _ in 0..look.min(LINES * self.pages) {
            let place = self.lines[self.next_line(pinned)?].oldest;
            self.counts.looks += 1;
            let PolicyNode { page, standing, .. } = self.nodes[place as usize];
            match uses(page, standing == Standing::Proven) {
                Use::Pinned => {
                    pinned += 1;
                    self.counts.pinned += 1;
                    self.unlink(place);
                    self.push(place);
                }
                Use::ForFewBytes => return Some(self.let_go(place, false)),
                Use::Times(times) => match self.verdict(&self.nodes[place as usize], times) {
                    EvictionVerdict::Goes { remembered } => return Some(self.let_go(place, remembered)),
                    EvictionVerdict::Stays { standing, chances } => {
                        self.unlink(place);
                        let node = &mut self.nodes[place as usize];
                        if standing == Standing::Proven && node.standing != Standing::Proven {
                            self.counts.promoted += 1;
                        }
                        (node.standing, node.chances) = (standing, chances);
                        self.push(place);
                        if coldest.is_none_or(|(least, _)| chances < least) {
                            coldest = Some((chances, place));
                        }
                    }
                },
            }
        }
        let (_, place) = coldest?;
        Some(self.let_go(place, false))
    }

    /// Decides what happens to an unpinned page that was used `times` times since the last look.
    fn verdict(&self, node: &PolicyNode<T>, times: u8) -> EvictionVerdict {
        let stays = |standing, chances| EvictionVerdict::Stays { standing, chances };
        let goes = |remembered| EvictionVerdict::Goes { remembered };
        match (node.class, node.standing) {
            // A kept page is evicted only when no other page is left.
            (_, Standing::Kept) => goes(false),
            (Class::Data, Standing::Asked) if times >= self.tuning.data_uses => stays(Standing::Proven, 0),
            (Class::Data, Standing::Asked) => goes(true),
            // The first use of a page that was read ahead is expected, so it does not count.
            (Class::Data, Standing::Ahead | Standing::Stayed) if times > self.tuning.data_uses => {
                stays(Standing::Proven, 0)
            }
            (Class::Data, Standing::Ahead) if times == 0 => stays(Standing::Stayed, 0),
            (Class::Data, Standing::Ahead | Standing::Stayed) => goes(false),
            (Class::Index, Standing::Ahead) if times == 0 => goes(false),
            (Class::Index, Standing::Ahead | Standing::Asked) => stays(Standing::Stayed, 0),
            (Class::Index, Standing::Stayed) if times == 0 => goes(true),
            (Class::Index, Standing::Stayed) => stays(Standing::Proven, 0),
            (_, Standing::Proven) => match node.chances.saturating_add(times).min(self.tuning.chances) {
                0 => goes(false),
                chances => stays(Standing::Proven, chances - 1),
            },
        }
    }

    /// The line whose oldest page is looked at next. The choice moves on by one line for each of the `pinned` pages
    /// that this search has met.
    fn next_line(&self, pinned: usize) -> Option<usize> {
        let all_bytes = self.bytes() - self.kept_bytes();
        let exceeds = |line: usize, percent: u64| self.lines[line].bytes * 100 > all_bytes * percent;
        let is_due = |offset, looks| self.counts.looks % looks == offset;
        let index =
            [INDEX_STAYED, INDEX_NEWCOMERS].into_iter().find(|line| exceeds(*line, self.tuning.index_percent / 2));
        let ahead = exceeds(AHEAD, self.tuning.ahead_percent) || self.lines[AHEAD].bytes > 0 && is_due(0, AHEAD_LOOKS);
        let first = match (index, ahead, exceeds(NEWCOMERS, self.tuning.data_percent)) {
            (Some(line), ..) if is_due(1, INDEX_LOOKS) => line,
            (_, true, _) => AHEAD,
            (_, false, true) => NEWCOMERS,
            (Some(line), false, false) => line,
            (None, false, false) => PROVEN,
        };
        if pinned >= self.pages - self.kept_pages {
            // All other pages are pinned.
            return [KEPT_DATA, KEPT_INDEX].into_iter().find(|line| self.lines[*line].oldest != NONE);
        }
        let lines = (0..OPEN_LINES).map(|step| (first + step) % OPEN_LINES);
        let mut lines = lines.filter(|&line| self.lines[line].oldest != NONE);
        let there_are = lines.clone().count();
        if there_are == 0 { None } else { lines.nth(pinned % there_are) }
    }

    fn let_go(&mut self, place: u32, remembered: bool) -> (T, u64) {
        if remembered {
            self.ghost.remember(self.nodes[place as usize].hash, self.pages);
        }
        self.counts.evicted += 1;
        self.take_out(place)
    }

    /// Bytes of the resident pages.
    pub fn bytes(&self) -> u64 {
        self.lines.iter().map(|line| line.bytes).sum()
    }

    /// Number of the resident pages.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Totals so far.
    pub fn counts(&self) -> PolicyCounts {
        self.counts
    }

    /// Memory the policy takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<PolicyNode<T>>() + self.ghost.memory_bytes()
    }

    /// Finds a place for `node`, which is in no line yet.
    fn take_place(&mut self, node: PolicyNode<T>) -> u32 {
        if self.free != NONE {
            let place = self.free;
            self.free = self.nodes[place as usize].newer;
            self.nodes[place as usize] = node;
            return place;
        }
        let places = self.nodes.len();
        assert!(places < NONE as usize, "four billion pages are resident");
        if places == self.nodes.capacity() {
            // Grow by a quarter: doubling would leave up to half of the memory unused.
            self.nodes.reserve_exact((places / 4).max(16));
        }
        self.nodes.push(node);
        places as u32
    }

    /// Takes a page out of its line and frees its place.
    fn take_out(&mut self, place: u32) -> (T, u64) {
        self.unlink(place);
        self.pages -= 1;
        let node = &mut self.nodes[place as usize];
        (node.newer, self.free) = (self.free, place);
        (node.page, u64::from(node.bytes))
    }

    /// Appends a page to the line of its standing.
    fn push(&mut self, place: u32) {
        let line = self.line_of(place);
        self.kept_pages += usize::from(line >= OPEN_LINES);
        let before = std::mem::replace(&mut self.lines[line].newest, place);
        let node = &mut self.nodes[place as usize];
        (node.older, node.newer) = (before, NONE);
        self.lines[line].bytes += u64::from(node.bytes);
        match before {
            NONE => self.lines[line].oldest = place,
            _ => self.nodes[before as usize].newer = place,
        }
    }

    /// Unlinks a page from the line of its standing.
    fn unlink(&mut self, place: u32) {
        let line = self.line_of(place);
        self.kept_pages -= usize::from(line >= OPEN_LINES);
        let PolicyNode { older, newer, bytes, .. } = self.nodes[place as usize];
        match older {
            NONE => self.lines[line].oldest = newer,
            _ => self.nodes[older as usize].newer = newer,
        }
        match newer {
            NONE => self.lines[line].newest = older,
            _ => self.nodes[newer as usize].older = older,
        }
        self.lines[line].bytes -= u64::from(bytes);
    }

    fn line_of(&self, place: u32) -> usize {
        let node = &self.nodes[place as usize];
        match (node.standing, node.class) {
            (Standing::Proven, _) => PROVEN,
            (Standing::Kept, Class::Data) => KEPT_DATA,
            (Standing::Kept, Class::Index) => KEPT_INDEX,
            (Standing::Stayed, Class::Index) => INDEX_STAYED,
            (Standing::Ahead | Standing::Asked, Class::Index) => INDEX_NEWCOMERS,
            (Standing::Ahead | Standing::Stayed, Class::Data) => AHEAD,
            (Standing::Asked, Class::Data) => NEWCOMERS,
        }
    }
}

#[cfg(test)]
mod tests;
