//! Draws what a client does: operations, records, fields, lengths and values, in the order in which the original
//! draws them.

use crate::generator::{Discrete, Exponential, Histogram, Hotspot, Scrambled, Uniform, Zipfian};
use crate::key::KeyNames;
use crate::keyspace::{Growth, Inserts, View};
use crate::random::Random;
use crate::settings::{FieldLength, KeyDistribution, Operations, Records, Settings};
use crate::value::{Text, push_checkable};
use harness::{Fields, Share, Strings};
use os::sync::Arc;

/// The kind of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads a record.
    Read,
    /// Writes one field of a record, or all fields.
    Update,
    /// Adds a record.
    Insert,
    /// Reads records that follow each other.
    Scan,
    /// Reads a record and then writes one field of it, or all fields.
    ReadModifyWrite,
}

/// What the clients of a run share to draw operations. During a run, only the inserts behind `view` and the zipfian
/// constants behind `keys` change.
pub struct Deck {
    choice: Discrete<Operation>,
    keys: Keys,
    view: View,
    field: Uniform,
    scan: ScanLength,
    /// Whether reads ask for one field. Otherwise they ask for all fields.
    reads_one_field: bool,
    /// Whether updates write the whole record.
    pub writes_all_fields: bool,
    values: Values,
}

/// Makes values and keys.
#[derive(Clone)]
pub struct Values {
    length: Length,
    field_names: Arc<[Vec<u8>]>,
    key_names: KeyNames,
    inserted: Inserted,
    /// Whether values can be computed from their key and field. If so, reads can be checked.
    pub checkable: bool,
}

/// The records that one of several processes inserts. Each process numbers records as if it ran alone. Therefore a
/// process asks only for records that were loaded and for records that the process has inserted itself. All of
/// these exist. If there are n processes, each of them inserts every n-th record, so no two processes insert the
/// same record.
#[derive(Clone, Copy, Debug)]
struct Inserted {
    /// The number of the first record that the load does not insert.
    first: i64,
    process: i64,
    processes: i64,
}

impl Inserted {
    /// The record that has the number `number` in this process.
    #[inline]
    fn record(self, number: i64) -> i64 {
        match number < self.first {
            true => number,
            false => self.first + (number - self.first) * self.processes + self.process,
        }
    }
}

#[derive(Clone)]
enum Length {
    Constant(usize),
    Uniform(Uniform),
    Zipfian(Zipfian),
    Histogram(Histogram),
}

enum ScanLength {
    Uniform(Uniform),
    Zipfian(Zipfian),
}

/// Chooses the records that a client asks for. Each client has a `Keys` of its own, because some kinds have a state
/// that changes.
#[derive(Clone)]
enum Keys {
    Uniform(Uniform),
    Zipfian(Scrambled),
    Latest { zipfian: Zipfian, growth: Option<Arc<Growth>> },
    Hotspot(Hotspot),
    Sequential { min: i64, interval: i64, next: i64, step: i64 },
    Exponential(Exponential),
}

impl Values {
    pub fn new(records: &Records) -> Values {
        let length = match &records.field_length {
            FieldLength::Constant(bytes) => Length::Constant(usize::try_from(*bytes).expect("settings check it")),
            FieldLength::Uniform(min, max) => Length::Uniform(Uniform::new(*min, *max)),
            FieldLength::Zipfian(min, max) => Length::Zipfian(Zipfian::new(*min, *max)),
            FieldLength::Histogram(histogram) => Length::Histogram(histogram.clone()),
        };
        let field_names = (0..records.fields).map(|field| format!("{}{field}", records.field_prefix).into_bytes());
        Values {
            length,
            field_names: field_names.collect(),
            key_names: records.key_names,
            inserted: Inserted { first: records.count, process: 0, processes: 1 },
            checkable: records.checkable,
        }
    }

    /// The values for a process that does `share` of a run.
    fn of_share(mut self, share: Share) -> Values {
        self.inserted.process = share.number() as i64;
        self.inserted.processes = share.of() as i64;
        self
    }

    /// Replaces `key` by the key of record `number`.
    #[inline]
    pub fn key(&self, number: i64, key: &mut Vec<u8>) {
        self.key_names.write(self.inserted.record(number), key);
    }

    #[inline]
    fn length(&self, random: &mut Random) -> usize {
        let bytes = match &self.length {
            Length::Constant(bytes) => return *bytes,
            Length::Uniform(uniform) => uniform.next(random),
            Length::Zipfian(zipfian) => zipfian.next(random),
            Length::Histogram(histogram) => histogram.next(random),
        };
        bytes.unsigned_abs() as usize
    }

    /// Appends a value of `field`.
    #[inline]
    pub fn push(&self, key: &[u8], field: usize, random: &mut Random, text: &mut Text, out: &mut Vec<u8>) {
        let bytes = self.length(random);
        if self.checkable {
            push_checkable(key, &self.field_names[field], bytes, out);
        } else {
            let start = out.len();
            out.resize(start + bytes, 0);
            text.fill(&mut out[start..]);
        }
    }

    /// Fills `record` with values for all fields.
    #[inline]
    pub fn fill(&self, key: &[u8], random: &mut Random, text: &mut Text, record: &mut Strings) {
        record.clear();
        for field in 0..self.field_names.len() {
            record.push_with(|out| self.push(key, field, random, text, out));
        }
    }

    /// Whether `record`, which was read from the store, has the values that follow from `key`.
    pub fn are_right(&self, key: &[u8], fields: Fields, record: &Strings, scratch: &mut Vec<u8>) -> bool {
        let Length::Constant(bytes) = self.length else { return true };
        let mut is_right = |field: usize, value: &[u8]| {
            scratch.clear();
            push_checkable(key, &self.field_names[field], bytes, scratch);
            scratch == value
        };
        match fields {
            Fields::One(field) => record.len() == 1 && record.get(0).is_some_and(|it| is_right(field as usize, it)),
            Fields::All => {
                record.len() == self.field_names.len()
                    && record.iter().enumerate().all(|(field, value)| is_right(field, value))
            }
        }
    }
}

impl Deck {
    /// Makes the deck of a process that does `share` of the run that `settings` describe.
    pub fn new(settings: &Settings, share: Share) -> Deck {
        let Settings { records, operations, .. } = settings;
        let choice = Discrete::new([
            (operations.read, Operation::Read),
            (operations.update, Operation::Update),
            (operations.insert, Operation::Insert),
            (operations.scan, Operation::Scan),
            (operations.read_modify_write, Operation::ReadModifyWrite),
        ]);
        let (min, max) = (operations.min_scan, operations.max_scan);
        Deck {
            choice: choice.expect("settings have an operation"),
            keys: Keys::new(records, operations, share),
            view: if operations.insert > 0.0 {
                View::Growing(Arc::new(Inserts::after(records.count)))
            } else {
                View::Fixed(records.count - 1)
            },
            field: Uniform::new(0, i64::from(records.fields) - 1),
            scan: if operations.scan_is_zipfian {
                ScanLength::Zipfian(Zipfian::new(min, max))
            } else {
                ScanLength::Uniform(Uniform::new(min, max))
            },
            reads_one_field: !operations.read_all_fields,
            writes_all_fields: operations.write_all_fields,
            values: Values::new(records).of_share(share),
        }
    }

    /// The values and keys.
    pub fn values(&self) -> &Values {
        &self.values
    }
}

/// What one client draws with: its random numbers, and the state that changes with each draw.
pub struct Hand {
    deck: Arc<Deck>,
    keys: Keys,
    view: View,
    pub random: Random,
    text: Text,
}

impl Hand {
    /// What client `number` of `clients` draws with, in a run with the seed `seed`.
    pub fn new(deck: &Arc<Deck>, seed: u64, number: usize, clients: usize) -> Hand {
        Hand {
            keys: deck.keys.of_client(number, clients),
            view: deck.view.clone(),
            random: Random::of_client(seed, number as u64),
            text: Text::of_client(seed, number as u64),
            deck: Arc::clone(deck),
        }
    }

    /// What all clients share.
    pub fn deck(&self) -> &Deck {
        &self.deck
    }

    /// Draws the next operation.
    #[inline]
    pub fn operation(&mut self) -> Operation {
        self.deck.choice.next(&mut self.random)
    }

    /// Draws a record that exists.
    #[inline]
    pub fn record(&mut self) -> i64 {
        let random = &mut self.random;
        match &mut self.keys {
            Keys::Uniform(uniform) => self.view.redraw(|| uniform.next(random)),
            Keys::Zipfian(scrambled) => self.view.redraw(|| scrambled.next(random)),
            Keys::Hotspot(hotspot) => self.view.redraw(|| hotspot.next(random)),
            Keys::Sequential { min, interval, next, step } => self.view.redraw(|| {
                let number = *min + *next % *interval;
                *next += *step;
                number
            }),
            Keys::Latest { zipfian, growth } => {
                let last = self.view.last();
                if let Some(growth) = growth {
                    growth.follow(zipfian, last);
                }
                last - zipfian.next_of(last, random)
            }
            Keys::Exponential(exponential) => {
                let last = self.view.last();
                last - View::Fixed(last).redraw(|| exponential.next(random) as i64)
            }
        }
    }

    /// Draws the field to write, for updates that write a single field.
    #[inline]
    pub fn field(&mut self) -> u32 {
        self.deck.field.next(&mut self.random).unsigned_abs() as u32
    }

    /// Draws the fields to read.
    #[inline]
    pub fn fields(&mut self) -> Fields {
        if self.deck.reads_one_field { Fields::One(self.field()) } else { Fields::All }
    }

    /// Draws how many records a scan reads.
    pub fn rows(&mut self) -> u64 {
        let rows = match &self.deck.scan {
            ScanLength::Uniform(uniform) => uniform.next(&mut self.random),
            ScanLength::Zipfian(zipfian) => zipfian.next(&mut self.random),
        };
        rows.unsigned_abs()
    }

    /// Replaces `value` by a value of `field`.
    #[inline]
    pub fn value(&mut self, key: &[u8], field: u32, value: &mut Vec<u8>) {
        value.clear();
        self.deck.values.push(key, field as usize, &mut self.random, &mut self.text, value);
    }

    /// Replaces `record` by a whole record.
    #[inline]
    pub fn whole(&mut self, key: &[u8], record: &mut Strings) {
        self.deck.values.fill(key, &mut self.random, &mut self.text, record);
    }

    /// The number of a record to insert.
    pub fn insert(&mut self) -> i64 {
        self.inserts().take()
    }

    /// Notes that the insert of record `number` has ended.
    pub fn acknowledge(&mut self, number: i64) {
        self.inserts().acknowledge(number);
    }

    fn inserts(&self) -> &Inserts {
        match &self.view {
            View::Growing(inserts) => inserts,
            View::Fixed(_) => unreachable!("a deck without inserts gives none"),
        }
    }
}

impl Keys {
    fn new(records: &Records, operations: &Operations, share: Share) -> Keys {
        let (first, last) = (records.start, records.start + records.span - 1);
        match operations.keys {
            KeyDistribution::Uniform => Keys::Uniform(Uniform::new(first, last)),
            KeyDistribution::Zipfian => {
                // The range from which numbers are drawn includes records that the run will insert, because the
                // likely records would change if the range grew. The range has room for twice as many inserts as
                // expected, since the run may make more inserts than their proportion says.
                let count = operations.count.unwrap_or(0) as f64 / share.of() as f64;
                let expected = (count * operations.insert * 2.0) as i64;
                Keys::Zipfian(Scrambled::new(first, last + 1 + expected))
            }
            KeyDistribution::Latest => {
                let zipfian = Zipfian::new(0, records.count - 2);
                let growth = (operations.insert > 0.0).then(|| Arc::new(Growth::from(zipfian.clone())));
                Keys::Latest { zipfian, growth }
            }
            KeyDistribution::Hotspot { data, operations } => {
                let hotspot = Hotspot::new(first, last, data, operations);
                Keys::Hotspot(hotspot.expect("settings check that it can draw"))
            }
            KeyDistribution::Sequential => Keys::Sequential { min: first, interval: records.span, next: 0, step: 1 },
            KeyDistribution::Exponential { percentile, fraction } => {
                Keys::Exponential(Exponential::new(percentile, records.count as f64 * fraction))
            }
        }
    }

    /// The keys of one client. If clients go through the records in order, each of n clients takes every n-th
    /// record.
    fn of_client(&self, number: usize, clients: usize) -> Keys {
        let mut own = self.clone();
        if let Keys::Sequential { next, step, .. } = &mut own {
            *next = number as i64;
            *step = clients as i64;
        }
        own
    }
}
