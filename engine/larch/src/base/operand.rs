//! Merge operators: writes that say how the value of a key changes, without reading it. This module knows how steps are
//! encoded, joined and applied. It knows no tables and no versions.
//!
//! ```text
//! operand:  step | step | …              in the order of the commits
//! step:     code u8 | bytes varint | content
//!
//! code          content
//! 0 nothing     empty: the key has no value before the next step
//! 1 set         the value before the next step
//! 2 add         a number, i64
//! 3 max         bytes
//! 4 min         bytes
//! 5 append      bytes
//! 6 or          offset u32 | bytes
//! 7 call        name bytes varint | name | what the function gets
//! 8 set until   a time, u64 in milliseconds since 1970 | the value before the next step until then, and none after it
//! ```
//!
//! Numbers are little-endian. A *complete* operand begins with `nothing`, `set` or `set until`: it says everything of the key, and
//! no older row is needed. All other operands continue what older rows say.
//!
//! Invariant: applying two operands one after the other has the same effect as applying them [joined](join). So rows
//! may be joined at any time, and in any groups.

use super::error::{Error, Result};
use os::sync::Arc;
use sst::format::varint;
use sst::{RowKind, Until};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

const NOTHING: u8 = 0;

/// The step that says that the key has no value before the next one.
pub const NO_VALUE: &[u8] = &[NOTHING, 0];

const SET: u8 = 1;
const ADD: u8 = 2;
const MAX: u8 = 3;
const MIN: u8 = 4;
const APPEND: u8 = 5;
const OR: u8 = 6;
const CALL: u8 = 7;
const SET_UNTIL: u8 = 8;

/// How a [merge](crate::Table::merge) changes the value of a key. It is applied when the value is read, or before
/// that, when rows are merged in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeOp<'a> {
    /// Adds to a counter, which is an `i64` of eight bytes, the least significant byte first. A key without a value
    /// counts as 0, and the sum wraps around. A value of another length cannot be added to: see
    /// [`Error::Merge`](crate::Error::Merge).
    Add(i64),
    /// Keeps the greater of the value and these bytes, compared as keys are. A key without a value gets the bytes.
    Max(&'a [u8]),
    /// Keeps the lesser of the value and these bytes, compared as keys are. A key without a value gets the bytes.
    Min(&'a [u8]),
    /// Appends these bytes to the value, which may then have at most 1 GiB. A key without a value gets the bytes.
    Append(&'a [u8]),
    /// Sets bits: each byte of the value from `at` on is combined with one of `bytes` by a bitwise or. A shorter value
    /// is first extended with zeros.
    Or {
        /// The first byte of the value that changes, counted from 0.
        at: u32,
        /// The bits.
        bytes: &'a [u8],
    },
    /// Calls a function of the program, see [`Builder::merge_function`](crate::Builder::merge_function).
    Call {
        /// The name under which the function was registered: at most 255 bytes.
        function: &'a str,
        /// What the function gets.
        operand: &'a [u8],
    },
}

/// An operand of one step. The most frequent one needs no allocation.
#[derive(Clone, Debug)]
pub(crate) enum Encoded {
    Add([u8; ADD_BYTES]),
    Long(Vec<u8>),
}

impl Deref for Encoded {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Add(bytes) => bytes,
            Self::Long(bytes) => bytes,
        }
    }
}

/// The operand that adds `number`.
#[inline]
fn add_of(number: i64) -> [u8; ADD_BYTES] {
    let mut bytes = [ADD, size_of::<i64>() as u8, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[2..].copy_from_slice(&number.to_le_bytes());
    bytes
}

impl MergeOp<'static> {
    /// Sets bit `bit` of the value. Bit 0 is the lowest bit of the first byte.
    pub fn set_bit(bit: u32) -> Self {
        const BITS: [[u8; 1]; 8] = [[1], [2], [4], [8], [16], [32], [64], [128]];
        Self::Or { at: bit / 8, bytes: &BITS[(bit % 8) as usize] }
    }
}

impl MergeOp<'_> {
    /// The operand of this step alone.
    #[inline]
    pub(crate) fn encode(&self) -> Encoded {
        match *self {
            Self::Add(number) => Encoded::Add(add_of(number)),
            _ => Encoded::Long(self.encode_long()),
        }
    }

    fn encode_long(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match *self {
            Self::Add(number) => out.extend_from_slice(&add_of(number)),
            Self::Max(bytes) => put_step(&mut out, MAX, &[bytes]),
            Self::Min(bytes) => put_step(&mut out, MIN, &[bytes]),
            Self::Append(bytes) => put_step(&mut out, APPEND, &[bytes]),
            Self::Or { at, bytes } => put_step(&mut out, OR, &[&at.to_le_bytes(), bytes]),
            Self::Call { function, operand } => {
                let mut name = Vec::new();
                varint::put_bytes(&mut name, function.as_bytes());
                put_step(&mut out, CALL, &[&name, operand]);
            }
        }
        out
    }

    /// The length that a value which only this step makes would have, at most.
    pub(crate) fn value_bytes(&self) -> usize {
        match *self {
            Self::Add(_) => size_of::<i64>(),
            Self::Max(bytes) | Self::Min(bytes) | Self::Append(bytes) => bytes.len(),
            Self::Or { at, bytes } => at as usize + bytes.len(),
            Self::Call { operand, .. } => operand.len(),
        }
    }
}

/// Changes values in a way that the engine does not know, see [`MergeOp::Call`]. The result must depend only on the
/// arguments, and later releases of the program must compute the same: operands that were written by an older release
/// are applied later. A function that changes its mind needs another name. A function is called by commits, reads and
/// background work, so it must not use the database.
pub trait MergeFunction: Send + Sync {
    /// The new value of `key`, whose value is `value`.
    ///
    /// # Errors
    ///
    /// An error says why the value cannot be changed. Reads of the key then fail with
    /// [`Error::Merge`](crate::Error::Merge), until the key is put or erased.
    fn apply(&self, key: &[u8], value: Option<&[u8]>, operand: &[u8]) -> std::result::Result<Vec<u8>, String>;

    /// One operand that has the effect of `older` followed by `newer`, if there is one. Without it, operands stay apart
    /// until the value is known.
    fn join(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let _ = (key, older, newer);
        None
    }
}

impl<F> MergeFunction for F
where
    F: Fn(&[u8], Option<&[u8]>, &[u8]) -> std::result::Result<Vec<u8>, String> + Send + Sync,
{
    fn apply(&self, key: &[u8], value: Option<&[u8]>, operand: &[u8]) -> std::result::Result<Vec<u8>, String> {
        self(key, value, operand)
    }
}

/// The merge functions that a program has registered, by name.
#[derive(Clone, Default)]
pub struct MergeFunctions(Option<Arc<BTreeMap<String, Arc<dyn MergeFunction>>>>);

impl MergeFunctions {
    /// Registers `function`, in place of another of the same name.
    pub(crate) fn add(&mut self, name: &str, function: Arc<dyn MergeFunction>) {
        let mut all = self.0.take().map_or_else(BTreeMap::new, |all| (*all).clone());
        all.insert(name.to_owned(), function);
        self.0 = Some(Arc::new(all));
    }

    fn get(&self, name: &str) -> Option<&dyn MergeFunction> {
        self.0.as_ref()?.get(name).map(|function| &**function)
    }
}

impl fmt::Debug for MergeFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().flat_map(|all| all.keys())).finish()
    }
}

/// The longest value that appending makes: 1 GiB.
const MAX_APPENDED_BYTES: usize = 1 << 30;

/// The longest name of a function.
pub const MAX_NAME_BYTES: usize = 255;

/// One step of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    Nothing,
    Set(&'a [u8]),
    SetUntil(Until, &'a [u8]),
    Op(MergeOp<'a>),
}

impl<'a> Step<'a> {
    fn decode(code: u8, mut content: &'a [u8]) -> Option<Self> {
        Some(match code {
            NOTHING if content.is_empty() => Self::Nothing,
            SET => Self::Set(content),
            SET_UNTIL => {
                let (until, value) = content.split_first_chunk()?;
                Self::SetUntil(Until::of_bytes(*until)?, value)
            }
            ADD => Self::Op(MergeOp::Add(i64::from_le_bytes(content.try_into().ok()?))),
            MAX => Self::Op(MergeOp::Max(content)),
            MIN => Self::Op(MergeOp::Min(content)),
            APPEND => Self::Op(MergeOp::Append(content)),
            OR => {
                let (at, bytes) = content.split_first_chunk()?;
                Self::Op(MergeOp::Or { at: u32::from_le_bytes(*at), bytes })
            }
            CALL => {
                let name = varint::take_bytes(&mut content).filter(|name| name.len() <= MAX_NAME_BYTES)?;
                Self::Op(MergeOp::Call { function: std::str::from_utf8(name).ok()?, operand: content })
            }
            _ => return None,
        })
    }
}

/// The steps of an operand. Ends after the first step that does not decode.
struct Steps<'a>(&'a [u8]);

impl<'a> Iterator for Steps<'a> {
    /// A step, or `None` for one that does not decode.
    type Item = Option<Step<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let (code, after) = (self.0[0], &mut &self.0[1..]);
        let step = varint::take_bytes(after).and_then(|content| Step::decode(code, content));
        self.0 = if step.is_some() { after } else { &[] };
        Some(step)
    }
}

/// Appends a step, whose content is given in pieces.
fn put_step(out: &mut Vec<u8>, code: u8, pieces: &[&[u8]]) {
    let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    out.reserve(1 + varint::MAX_BYTES + bytes);
    out.push(code);
    varint::put(out, bytes as u64);
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
}

/// Whether `operand` is what a program writes: a single step, which says nothing of the value before it.
pub fn is_valid(operand: &[u8]) -> bool {
    let mut steps = Steps(operand);
    matches!((steps.next(), steps.next()), (Some(Some(Step::Op(_))), None))
}

/// Whether `operand` says everything of its key, so that no older row is needed.
pub fn is_complete(operand: &[u8]) -> bool {
    matches!(operand.first(), Some(&(NOTHING | SET | SET_UNTIL)))
}

/// Calls `each` with the steps of an operand as a program writes them. The value before them comes first: `None` if it
/// is not known, and otherwise the value, if there is one, with the time until which it is there.
pub fn describe<'a>(operand: &'a [u8], mut each: impl FnMut(MergeOp<'a>)) -> Option<(Option<&'a [u8]>, Option<Until>)> {
    let mut before = None;
    for step in Steps(operand).flatten() {
        match step {
            Step::Nothing => before = Some((None, None)),
            Step::Set(value) => before = Some((Some(value), None)),
            Step::SetUntil(until, value) => before = Some((Some(value), Some(until))),
            Step::Op(op) => each(op),
        }
    }
    before
}

/// What is known of a key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The value.
    Value(Vec<u8>),
    /// An operand. The value is not known, or cannot be computed here.
    Operand(Vec<u8>),
}

/// Collects what rows say of a key, from the newest to the oldest.
#[derive(Debug, Default)]
pub struct Collected<'c> {
    /// The operands, newest first. Only the last may be complete.
    operands: Vec<Cow<'c, [u8]>>,
    /// What lies below them, if that is known.
    below: Option<Below<'c>>,
}

/// What lies below the operands of a key.
#[derive(Clone, Debug)]
enum Below<'c> {
    Nothing,
    Value(Cow<'c, [u8]>),
    /// A value that is there until a time.
    Until(Until, Cow<'c, [u8]>),
}

impl<'c> Collected<'c> {
    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        self.operands.is_empty() && self.below.is_none()
    }

    /// Adds the operand of the next older row. Returns whether older rows matter.
    pub fn add(&mut self, operand: impl Into<Cow<'c, [u8]>>) -> bool {
        let operand = operand.into();
        if let Some(newer) = self.operands.last_mut()
            && let (Some(a), Some(b)) = (added(&operand), added(newer))
        {
            newer.to_mut()[2..].copy_from_slice(&a.wrapping_add(b).to_le_bytes());
            return true;
        }
        let goes_on = !is_complete(&operand);
        self.operands.push(operand);
        goes_on
    }

    /// Notes that the next older row puts `value`, until a time if it has one, so that older rows do not matter. Has no
    /// effect once it is known what lies below.
    pub fn end_with(&mut self, value: impl Into<Cow<'c, [u8]>>, until: Option<Until>) {
        self.below.get_or_insert_with(|| match until {
            None => Below::Value(value.into()),
            Some(until) => Below::Until(until, value.into()),
        });
    }

    /// Notes that no older row has a value. Has no effect once it is known what lies below.
    pub fn end(&mut self) {
        self.below.get_or_insert(Below::Nothing);
    }

    /// The value of `key` at the time `now`, in milliseconds since 1970. What was collected must be complete.
    ///
    /// # Errors
    ///
    /// Returns why the value cannot be computed.
    pub fn value(mut self, key: &[u8], functions: &MergeFunctions, now: u64) -> std::result::Result<Vec<u8>, String> {
        if let Some(sum) = self.sum() {
            return Ok(sum.to_vec());
        }
        let before = self.below.take().and_then(|below| below.into_value(now));
        self.applied(before, key, functions, now)
            .map_err(|why| format!("the merges of row {} cannot be applied: {why}", key.escape_ascii()))
    }

    /// The value of `key`, or the shortest operand that has the same effect as all that was collected. `now` is the time in
    /// milliseconds since 1970. A value that will expire later stays in the operand, because the merges will not expire.
    pub fn finish(self, key: &[u8], functions: &MergeFunctions, now: u64) -> Merged {
        if let Some(sum) = self.sum() {
            return Merged::Value(sum.to_vec());
        }
        if self.below.is_none() && !self.operands.last().is_some_and(|oldest| is_complete(oldest)) {
            let mut joined = Joined::default();
            self.oldest_first().for_each(|operand| joined.add(operand, key, functions));
            return Merged::Operand(joined.operand);
        }
        let before = || self.below.clone().and_then(|below| below.into_value(now));
        if self.expires(now).is_none()
            && let Ok(value) = self.applied(before(), key, functions, now)
        {
            return Merged::Value(value);
        }
        let (mut joined, mut first) = (Joined::default(), Vec::new());
        match &self.below {
            None => {}
            Some(Below::Nothing) => first.extend_from_slice(NO_VALUE),
            Some(Below::Value(value)) => put_step(&mut first, SET, &[value]),
            Some(Below::Until(until, value)) => put_step(&mut first, SET_UNTIL, &[&until.to_bytes(), value]),
        }
        joined.add(&first, key, functions);
        self.oldest_first().for_each(|operand| joined.add(operand, key, functions));
        Merged::Operand(joined.operand)
    }

    fn oldest_first(&self) -> impl Iterator<Item = &[u8]> {
        self.operands.iter().rev().map(|operand| &**operand)
    }

    /// The sum, if all that was collected adds to one counter.
    fn sum(&self) -> Option<[u8; 8]> {
        let [only] = &self.operands[..] else { return None };
        let sum = added(only)?;
        match &self.below {
            Some(Below::Nothing) => Some(sum.to_le_bytes()),
            Some(Below::Value(value)) => {
                let before = i64::from_le_bytes((**value).try_into().ok()?);
                Some(before.wrapping_add(sum).to_le_bytes())
            }
            Some(Below::Until(..)) | None => None,
        }
    }

    /// When the value below all merges will expire, if it does so after `now`.
    pub fn expires(&self, now: u64) -> Option<Until> {
        let until = match (self.operands.last().and_then(|oldest| Steps(oldest).next().flatten()), &self.below) {
            (Some(Step::SetUntil(until, _)), _) => Some(until),
            (Some(Step::Nothing | Step::Set(_)), _) => None,
            (_, Some(Below::Until(until, _))) => Some(*until),
            _ => None,
        };
        until.filter(|until| until.millis() > now)
    }

    /// Applies the operands to the value `before` them.
    fn applied(
        &self,
        before: Option<Vec<u8>>,
        key: &[u8],
        functions: &MergeFunctions,
        now: u64,
    ) -> std::result::Result<Vec<u8>, String> {
        let mut value = before;
        self.oldest_first().try_for_each(|operand| apply(operand, &mut value, key, functions, now))?;
        value.ok_or_else(|| "its beginning is missing".to_owned())
    }
}

impl Below<'_> {
    /// The value at the time `now`, if there is one.
    fn into_value(self, now: u64) -> Option<Vec<u8>> {
        match self {
            Self::Value(value) => Some(value.into_owned()),
            Self::Until(until, value) => (until.millis() > now).then(|| value.into_owned()),
            Self::Nothing => None,
        }
    }
}

/// The number that an operand adds, if it has one step and that is an addition.
#[inline]
fn added(operand: &[u8]) -> Option<i64> {
    match operand {
        [ADD, 8, number @ ..] => number.try_into().ok().map(i64::from_le_bytes),
        _ => None,
    }
}

/// As [`Collected::finish`], for the most frequent case: `operand` adds to a counter, of which the row below says `below`.
/// Returns the kind and the bytes of the row with the sum.
#[inline]
pub fn add_to(below: (RowKind, &[u8]), operand: &[u8]) -> Option<(RowKind, [u8; ADD_BYTES], usize)> {
    let number = added(operand)?;
    match below {
        (RowKind::Put, value) => {
            let before = i64::from_le_bytes(value.try_into().ok()?);
            let mut row = [0; ADD_BYTES];
            row[..8].copy_from_slice(&before.wrapping_add(number).to_le_bytes());
            Some((RowKind::Put, row, 8))
        }
        (RowKind::Merge, older) => Some((RowKind::Merge, add_of(added(older)?.wrapping_add(number)), ADD_BYTES)),
        (RowKind::Erase | RowKind::PutUntil, _) => None,
    }
}

/// The length of an operand that only adds.
const ADD_BYTES: usize = 10;

/// The value of `key` after `operand`, if it was `before`.
///
/// # Errors
///
/// [`Error::Merge`] if the value cannot be computed.
pub fn value_after(key: &[u8], before: Option<&[u8]>, operand: &[u8], functions: &MergeFunctions) -> Result<Vec<u8>> {
    let mut collected = Collected::default();
    collected.add(operand);
    match before {
        Some(value) => collected.end_with(value, None),
        None => collected.end(),
    }
    collected.value(key, functions, 0).map_err(Error::Merge)
}

/// Operands that are joined to one, from the oldest to the newest.
#[derive(Debug, Default)]
struct Joined {
    operand: Vec<u8>,
    /// Where the last step begins, if there is a step.
    last: Option<usize>,
}

impl Joined {
    /// Adds a newer operand.
    fn add(&mut self, newer: &[u8], key: &[u8], functions: &MergeFunctions) {
        if is_complete(newer) {
            *self = Self::default();
        }
        let mut steps = Steps(newer);
        let mut rest = newer;
        while let Some(Some(next)) = steps.next() {
            let bytes = &rest[..rest.len() - steps.0.len()];
            rest = steps.0;
            if !self.join_last(next, key, functions) {
                self.last = Some(self.operand.len());
                self.operand.extend_from_slice(bytes);
            }
        }
    }

    /// Joins `next` with the last step, if there is one step with the effect of both. Returns whether it did.
    fn join_last(&mut self, next: Step<'_>, key: &[u8], functions: &MergeFunctions) -> bool {
        let Some(at) = self.last else { return false };
        let (Some(Some(Step::Op(last))), Step::Op(next)) = (Steps(&self.operand[at..]).next(), next) else {
            return false;
        };
        if let (MergeOp::Append(before), MergeOp::Append(bytes)) = (last, next) {
            // The bytes of the last step are not copied again, but for the few times that their length becomes longer.
            let mut length = Vec::new();
            varint::put(&mut length, (before.len() + bytes.len()) as u64);
            let content = self.operand.len() - before.len();
            self.operand.splice(at + 1..content, length);
            self.operand.extend_from_slice(bytes);
            return true;
        }
        let Some(joined) = join_ops(last, next, key, functions) else { return false };
        self.operand.truncate(at);
        self.operand.extend_from_slice(&joined);
        true
    }
}

/// One step with the effect of `older` followed by `newer`, if there is one.
fn join_ops(older: MergeOp<'_>, newer: MergeOp<'_>, key: &[u8], functions: &MergeFunctions) -> Option<Vec<u8>> {
    Some(match (older, newer) {
        (MergeOp::Add(a), MergeOp::Add(b)) => MergeOp::Add(a.wrapping_add(b)).encode_long(),
        (MergeOp::Max(a), MergeOp::Max(b)) => MergeOp::Max(a.max(b)).encode_long(),
        (MergeOp::Min(a), MergeOp::Min(b)) => MergeOp::Min(a.min(b)).encode_long(),
        (MergeOp::Or { at: a, bytes }, MergeOp::Or { at: b, bytes: more }) => {
            let (a_end, b_end) = (u64::from(a) + bytes.len() as u64, u64::from(b) + more.len() as u64);
            // Steps far apart stay apart, or the bytes between them would be written as zeros.
            if u64::from(a) > b_end || u64::from(b) > a_end {
                return None;
            }
            let start = a.min(b);
            let mut all = vec![0; (a_end.max(b_end) - u64::from(start)) as usize];
            or(&mut all, (a - start) as usize, bytes);
            or(&mut all, (b - start) as usize, more);
            MergeOp::Or { at: start, bytes: &all }.encode_long()
        }
        (MergeOp::Call { function, operand }, MergeOp::Call { function: same, operand: then }) if function == same => {
            let of_name = functions.get(function)?;
            let joined = guarded(|| Ok(of_name.join(key, operand, then))).ok()??;
            MergeOp::Call { function, operand: &joined }.encode_long()
        }
        _ => return None,
    })
}

fn or(value: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if value.len() < at + bytes.len() {
        value.resize(at + bytes.len(), 0);
    }
    value[at..].iter_mut().zip(bytes).for_each(|(byte, bits)| *byte |= bits);
}

/// Calls a function of the program. A panic in it is an error of the value.
fn guarded<T>(call: impl FnOnce() -> std::result::Result<T, String>) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err("its merge function panicked".to_owned()))
}

/// Applies an operand to `value`, which is `None` if the key has no value, at the time `now` in milliseconds since 1970.
///
/// # Errors
///
/// Returns why this cannot be done: a step does not fit the value before it, or its function is not registered.
fn apply(
    operand: &[u8],
    value: &mut Option<Vec<u8>>,
    key: &[u8],
    functions: &MergeFunctions,
    now: u64,
) -> std::result::Result<(), String> {
    for step in Steps(operand) {
        let op = match step.ok_or("it has a step that does not decode")? {
            Step::Nothing => {
                *value = None;
                continue;
            }
            Step::Set(bytes) => {
                *value = Some(bytes.to_vec());
                continue;
            }
            Step::SetUntil(until, bytes) => {
                *value = (until.millis() > now).then(|| bytes.to_vec());
                continue;
            }
            Step::Op(op) => op,
        };
        match op {
            MergeOp::Add(number) => {
                let before = match value.as_deref() {
                    None => 0,
                    Some(value) => i64::from_le_bytes(value.try_into().map_err(|_| {
                        let bytes = value.len();
                        format!("its value has {bytes} bytes, and a number to add to has 8; put or erase the key")
                    })?),
                };
                *value = Some(before.wrapping_add(number).to_le_bytes().to_vec());
            }
            MergeOp::Max(bytes) if value.as_deref().is_none_or(|value| value < bytes) => *value = Some(bytes.to_vec()),
            MergeOp::Min(bytes) if value.as_deref().is_none_or(|value| value > bytes) => *value = Some(bytes.to_vec()),
            MergeOp::Max(_) | MergeOp::Min(_) => {}
            MergeOp::Append(bytes) => {
                let value = value.get_or_insert_default();
                if value.len() + bytes.len() > MAX_APPENDED_BYTES {
                    let bytes = value.len() + bytes.len();
                    return Err(format!(
                        "its value would have {bytes} bytes, more than {MAX_APPENDED_BYTES}; put or erase the key"
                    ));
                }
                value.extend_from_slice(bytes);
            }
            MergeOp::Or { at, bytes } => or(value.get_or_insert_default(), at as usize, bytes),
            MergeOp::Call { function, operand } => {
                let of_name = functions
                    .get(function)
                    .ok_or_else(|| format!("the merge function {function} is not registered; register it at open"))?;
                *value = Some(guarded(|| of_name.apply(key, value.as_deref(), operand))?);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
