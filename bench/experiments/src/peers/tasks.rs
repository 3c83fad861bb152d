//! Tasks of peers that are not workloads of YCSB.

use super::orders::Fill;
use harness::{Client, Extra, Failure, Fields, Kind, Next, Outcome, Reply, Request, Rows, Strings, Workload};
use ycsb::{KeyNames, Random, Text};

/// 20-byte keys, ordered like their numbers.
pub const KEYS: KeyNames = KeyNames { ordered: true, zero_padding: 16 };

/// The keys of a random load.
const HASHED_KEYS: KeyNames = KeyNames { ordered: false, ..KEYS };

/// Bytes of a row's only field.
pub const VALUE_BYTES: usize = 100;

/// The rows of a sorted load.
pub struct SortedRows {
    next: u64,
    records: u64,
    text: Text,
    value: [u8; VALUE_BYTES],
}

impl SortedRows {
    /// Rows 0 to `records` (exclusive).
    pub fn new(records: u64) -> Self {
        Self { next: 0, records, text: Text::of_client(0, 0), value: [0; VALUE_BYTES] }
    }
}

impl Rows for SortedRows {
    fn next_row(&mut self, key: &mut Vec<u8>, record: &mut Strings) -> bool {
        if self.next == self.records {
            return false;
        }
        KEYS.write(self.next.cast_signed(), key);
        self.next += 1;
        self.text.fill(&mut self.value);
        record.clear();
        record.push(&self.value);
        true
    }
}

/// An operation of a single request, which a client repeats.
#[derive(Clone, Copy, Debug)]
pub enum Single {
    /// A read of an absent key that sorts between existing ones.
    Absent,
    /// A read of this many keys.
    Many(usize),
    /// A scan of the whole table.
    Scan,
    /// An insert of a row after all other rows.
    Put,
    /// A new value for an existing row of a table that was filled in this way.
    Overwrite(Fill),
}

/// Clients that repeat one kind of operation.
pub struct Singles {
    /// The kind of operation.
    pub what: Single,
    /// Rows of the table.
    pub records: u64,
    /// Decides every operation.
    pub seed: u64,
}

impl Workload for Singles {
    type Client = One;

    fn kinds(&self) -> &'static [&'static str] {
        match self.what {
            Single::Absent | Single::Many(_) => &["READ"],
            Single::Scan => &["SCAN"],
            Single::Put => &["INSERT"],
            Single::Overwrite(_) => &["UPDATE"],
        }
    }

    fn client(&self, number: usize, clients: usize) -> One {
        One {
            what: self.what,
            records: self.records,
            random: Random::of_client(self.seed, number as u64),
            put: self.records + number as u64,
            stride: clients as u64,
            key: Vec::new(),
            strings: Strings::new(),
            text: Text::of_client(self.seed, number as u64),
            value: [0; VALUE_BYTES],
        }
    }
}

/// A client that repeats one kind of operation.
pub struct One {
    what: Single,
    records: u64,
    random: Random,
    put: u64,
    stride: u64,
    key: Vec<u8>,
    strings: Strings,
    text: Text,
    value: [u8; VALUE_BYTES],
}

impl One {
    fn draw(&mut self, names: KeyNames) {
        // The high half of a 64-bit random number times the number of rows: uniform enough, as 2^64 is far larger.
        let random = u128::from(self.random.long().cast_unsigned());
        names.write(((random * u128::from(self.records)) >> 64) as i64, &mut self.key);
    }
}

impl Client for One {
    fn begin(&mut self) -> bool {
        match self.what {
            Single::Absent => {
                self.draw(KEYS);
                self.key.push(b'!');
            }
            Single::Many(keys) => {
                self.strings.clear();
                for _ in 0..keys {
                    self.draw(KEYS);
                    self.strings.push(&self.key);
                }
            }
            Single::Scan => {}
            Single::Put => {
                KEYS.write(self.put.cast_signed(), &mut self.key);
                self.put += self.stride;
                self.text.fill(&mut self.value);
                self.strings.clear();
                self.strings.push(&self.value);
            }
            Single::Overwrite(filled) => {
                self.draw(match filled {
                    Fill::Sorted => KEYS,
                    Fill::Random => HASHED_KEYS,
                });
                self.text.fill(&mut self.value);
            }
        }
        true
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        let request = match self.what {
            Single::Absent => Request::Read { key: &self.key, fields: Fields::All },
            Single::Many(_) => Request::ReadMany { keys: &self.strings, fields: Fields::All },
            Single::Scan => Request::Scan { start: &[], rows: u64::MAX, fields: Fields::All },
            Single::Put => Request::Insert { key: &self.key, record: &self.strings },
            Single::Overwrite(_) => Request::Update { key: &self.key, field: 0, value: &self.value },
        };
        (Kind(0), request)
    }

    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, _: &mut Extra<'_>) -> Next {
        let as_wanted = match (self.what, result) {
            (_, Err(_)) => false,
            (Single::Absent, Ok(outcome)) => outcome == Outcome::NotFound,
            (Single::Many(keys), Ok(_)) => reply.rows() == keys as u64,
            // The scan may also return rows that were inserted while it ran.
            (Single::Scan, Ok(_)) => reply.rows() >= self.records,
            (Single::Put | Single::Overwrite(_), Ok(_)) => true,
        };
        if as_wanted { Next::Done } else { Next::Failed }
    }
}
