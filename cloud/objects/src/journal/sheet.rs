//! The bytes of a sheet, as `docs/format/store.md` describes them. This module does not know where sheets are
//! stored.
//!
//! ```text
//! magic 8 bytes | number u64 | epoch u64 | token u64 u64 | changes u32 | changes | crc32c u32 of all before it
//! text:    bytes u32 | UTF-8
//! table:   1u8 | names u32 | { name text | file u64 } | files u32 | { file u64 | extents u32 |
//!              { from u64 | sheet u64 | at u32 | bytes u32 } } | holder u8 (0 or 1) | holder | begins u32 | { sheet u64 | since u64 }
//! begin:   2u8 | holder                       holder: epoch u64 | since u64 | who text
//! write:   3u8 | file u64 | from u64 | bytes u32 | the bytes
//! name:    4u8 | name text | 0u8              the name stands for no file
//! name:    5u8 | name text | file u64
//! ```
//!
//! A sheet with one of these changes, or with the name `PARENTS`, has another magic:
//!
//! ```text
//! branch:  6u8 | id u64                    it needs nothing any more
//! branch:  7u8 | id u64 | branch           branch: sheet u64 | since u64 | prefix text
//! table:   8u8 | as 1u8 | branches u32 | { id u64 | branch }
//! ```
//!
//! A sheet with one of these changes has a third magic:
//!
//! ```text
//! claim:   9u8 | id u64 | since u64 | who text     the only change of its sheet
//! end:    10u8                                     the last change
//! table:  11u8 | as 8u8, without branches or with | term: id u64 | sheet u64 | over u8 (0 or 1)
//!              | marks: sheet u64 | since u64 | settled u64
//! ```

use super::table::{Branch, CLAIM, Change, Extent, GUEST, Holder, Last, Marks, PARENTS, Table, Term};
use std::collections::BTreeMap;

/// The magics of sheets. A reader must refuse a sheet whose magic it does not know. Otherwise it could miss files,
/// remove files, or go on writing after another process has taken over.
const MAGICS: [[u8; 8]; 3] = [*b"LARCHJS1", *b"LARCHJS2", *b"LARCHJS3"];

/// Indexes into [`MAGICS`].
const PLAIN: usize = 0;
const OF_BRANCHES: usize = 1;
const OF_TERMS: usize = 2;

const TABLE: u8 = 1;
const BEGIN: u8 = 2;
const WRITE: u8 = 3;
const NO_FILE: u8 = 4;
const FILE: u8 = 5;
const NO_BRANCH: u8 = 6;
const BRANCH: u8 = 7;
const TABLE_WITH_BRANCHES: u8 = 8;
const CLAIM_OF_TERM: u8 = 9;
const END: u8 = 10;
const TABLE_WITH_TERM: u8 = 11;

/// A sheet that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    pub number: u64,
    /// The epoch of the writer that has put the sheet.
    pub epoch: u64,
    pub changes: Vec<Change>,
}

impl Sheet {
    /// Whether the sheet has a table, so that a reader can skip all sheets before it.
    pub fn has_table(&self) -> bool {
        matches!(self.changes.first(), Some(Change::Table(_)))
    }

    /// Whether the sheet is by a process that is taking over and does not know its epoch yet.
    pub fn takes_over(&self) -> bool {
        self.epoch == CLAIM
    }

    /// Whether the sheet is by a process that makes a branch. The writer goes on after such a sheet.
    pub fn is_of_guest(&self) -> bool {
        self.epoch == GUEST
    }
}

/// Builds the bytes of a sheet.
#[derive(Debug)]
pub struct SheetWriter {
    bytes: Vec<u8>,
    changes: Vec<Change>,
    /// The sheet's magic, as an index into [`MAGICS`].
    magic: usize,
}

/// The offset of the number of changes in a sheet.
const COUNT_AT: usize = 40;

impl SheetWriter {
    /// An empty sheet. `token` is unique to this sheet.
    pub fn new(number: u64, epoch: u64, token: [u64; 2]) -> SheetWriter {
        let mut bytes = MAGICS[PLAIN].to_vec();
        for value in [number, epoch, token[0], token[1]] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend([0; 4]);
        SheetWriter { bytes, changes: Vec::new(), magic: PLAIN }
    }

    fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    fn u32(&mut self, value: usize) {
        self.bytes.extend(u32::try_from(value).expect("a sheet is smaller than 4 GiB").to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes.extend(value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.u32(text.len());
        self.bytes.extend(text.as_bytes());
    }

    fn holder(&mut self, holder: &Holder) {
        self.u64(holder.epoch);
        self.u64(holder.since);
        self.text(&holder.who);
    }

    /// Adds the table, as it is before the other changes of this sheet. It must be the first change.
    pub fn table(&mut self, table: &Table) {
        assert!(self.changes.is_empty(), "the table comes first");
        let has_branches = !table.branches.is_empty();
        let has_term = table.term != Term::default() || table.marks != Marks::default();
        if has_branches || table.names.contains_key(PARENTS) {
            self.needs(OF_BRANCHES);
        }
        if has_term {
            self.needs(OF_TERMS);
        }
        self.u8(match (has_term, has_branches) {
            (true, _) => TABLE_WITH_TERM,
            (false, true) => TABLE_WITH_BRANCHES,
            (false, false) => TABLE,
        });
        self.u32(table.names.len());
        for (name, file) in &table.names {
            self.text(name);
            self.u64(*file);
        }
        self.u32(table.files.len());
        for (file, extents) in &table.files {
            self.u64(*file);
            self.u32(extents.len());
            for extent in extents {
                self.u64(extent.from);
                self.u64(extent.sheet);
                self.u32(extent.at as usize);
                self.u32(extent.bytes as usize);
            }
        }
        self.u8(u8::from(table.holder.is_some()));
        if let Some(holder) = &table.holder {
            self.holder(holder);
        }
        self.u32(table.fences.len());
        for (sheet, since) in &table.fences {
            self.u64(*sheet);
            self.u64(*since);
        }
        if has_branches || has_term {
            self.u32(table.branches.len());
            for (id, branch) in &table.branches {
                self.u64(*id);
                self.put_branch(branch);
            }
        }
        if has_term {
            let Term { id, sheet, is_over } = table.term;
            self.u64(id);
            self.u64(sheet);
            self.u8(u8::from(is_over));
            let Marks { sheet, since, settled } = table.marks;
            [sheet, since, settled].into_iter().for_each(|value| self.u64(value));
        }
        self.changes.push(Change::Table(Table { last: Last::default(), ..table.clone() }));
    }

    /// Raises the magic to at least `magic`, for a change that readers of lower magics do not know.
    fn needs(&mut self, magic: usize) {
        self.magic = self.magic.max(magic);
    }

    fn put_branch(&mut self, branch: &Branch) {
        self.u64(branch.sheet);
        self.u64(branch.since);
        self.text(&branch.prefix);
    }

    /// Adds a change: a branch is being made or, without `branch`, no longer needs files.
    pub fn branch(&mut self, id: u64, branch: Option<&Branch>) {
        self.needs(OF_BRANCHES);
        self.u8(if branch.is_some() { BRANCH } else { NO_BRANCH });
        self.u64(id);
        if let Some(branch) = branch {
            self.put_branch(branch);
        }
        self.changes.push(Change::Branch { id, branch: branch.cloned() });
    }

    /// Adds a change: a writer takes over.
    pub fn begin(&mut self, holder: &Holder) {
        self.u8(BEGIN);
        self.holder(holder);
        self.changes.push(Change::Begin(holder.clone()));
    }

    /// Adds a change: a writer takes over without knowing its epoch. The sheet must have the epoch [`CLAIM`] and no
    /// other change.
    pub fn claim(&mut self, id: u64, since: u64, who: &str) {
        self.needs(OF_TERMS);
        self.u8(CLAIM_OF_TERM);
        self.u64(id);
        self.u64(since);
        self.text(who);
        self.changes.push(Change::Claim { id, since, who: who.to_owned() });
    }

    /// Adds a change: the present writer puts no more sheets.
    pub fn end(&mut self) {
        self.needs(OF_TERMS);
        self.u8(END);
        self.changes.push(Change::End);
    }

    /// Adds a change: a file is cut at `from` and continues with `bytes`.
    pub fn write(&mut self, file: u64, from: u64, bytes: &[u8]) {
        self.u8(WRITE);
        self.u64(file);
        self.u64(from);
        self.u32(bytes.len());
        let at = u32::try_from(self.bytes.len()).expect("a sheet is smaller than 4 GiB");
        self.bytes.extend(bytes);
        self.changes.push(Change::Write { file, from, at, bytes: bytes.len() as u32 });
    }

    /// Adds a change: a name now stands for `file`, or for no file.
    pub fn name(&mut self, name: &str, file: Option<u64>) {
        if name == PARENTS {
            self.needs(OF_BRANCHES);
        }
        self.u8(if file.is_some() { FILE } else { NO_FILE });
        self.text(name);
        if let Some(file) = file {
            self.u64(file);
        }
        self.changes.push(Change::Name { name: name.to_owned(), file });
    }

    /// Returns the bytes of the sheet, and its changes.
    pub fn finish(mut self) -> (Vec<u8>, Vec<Change>) {
        let count = u32::try_from(self.changes.len()).expect("a sheet is smaller than 4 GiB");
        self.bytes[..MAGICS[PLAIN].len()].copy_from_slice(&MAGICS[self.magic]);
        self.bytes[COUNT_AT..COUNT_AT + 4].copy_from_slice(&count.to_le_bytes());
        let crc = crc_fast::crc32_iscsi(&self.bytes);
        self.bytes.extend(crc.to_le_bytes());
        (self.bytes, self.changes)
    }
}

/// Decodes a sheet.
///
/// # Errors
///
/// A text that says what is wrong with the bytes.
pub fn decode(bytes: &[u8]) -> Result<Sheet, String> {
    let Some((body, crc)) = bytes.split_last_chunk::<4>() else {
        return Err(format!("{} bytes are too few for a sheet", bytes.len()));
    };
    if !MAGICS.iter().any(|magic| body.starts_with(magic)) {
        return Err("it does not begin as a sheet does, or a newer release has written it".to_owned());
    }
    if crc_fast::crc32_iscsi(body) != u32::from_le_bytes(*crc) {
        return Err("its checksum is wrong".to_owned());
    }
    let mut reader = SheetReader { bytes: body, at: MAGICS[PLAIN].len() };
    let (number, epoch) = (reader.u64()?, reader.u64()?);
    // The token only keeps two sheets from having the same bytes.
    reader.take(16)?;
    let count = reader.u32()?;
    let mut changes = Vec::new();
    for place in 0..count {
        let change = reader.change()?;
        if place > 0 && matches!(change, Change::Table(_)) {
            return Err("a table comes after other changes".to_owned());
        }
        if epoch == GUEST && !matches!(change, Change::Table(_) | Change::Branch { .. }) {
            return Err("a guest has changed files".to_owned());
        }
        if (epoch == CLAIM) != matches!(change, Change::Claim { .. }) {
            return Err("a sheet that takes over has other changes, or none".to_owned());
        }
        changes.push(change);
    }
    if reader.at != body.len() {
        return Err(format!("{} bytes follow the last change", body.len() - reader.at));
    }
    Ok(Sheet { number, epoch, changes })
}

struct SheetReader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> SheetReader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], String> {
        let taken = self.at.checked_add(count).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| format!("it ends within a change, at byte {}", self.at))?;
        self.at += count;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("4 bytes were taken")))
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("8 bytes were taken")))
    }

    fn text(&mut self) -> Result<String, String> {
        let count = self.u32()? as usize;
        let text = std::str::from_utf8(self.take(count)?).map_err(|_| "a text is not UTF-8".to_owned())?;
        Ok(text.to_owned())
    }

    fn holder(&mut self) -> Result<Holder, String> {
        Ok(Holder { epoch: self.u64()?, since: self.u64()?, who: self.text()? })
    }

    fn change(&mut self) -> Result<Change, String> {
        match self.u8()? {
            TABLE => self.table().map(Change::Table),
            TABLE_WITH_TERM => {
                let mut table = self.table_with_branches()?;
                table.term = Term { id: self.u64()?, sheet: self.u64()?, is_over: self.u8()? != 0 };
                table.marks = Marks { sheet: self.u64()?, since: self.u64()?, settled: self.u64()? };
                Ok(Change::Table(table))
            }
            TABLE_WITH_BRANCHES => {
                let table = self.table_with_branches()?;
                if table.branches.is_empty() {
                    return Err("its table has no branches".to_owned());
                }
                Ok(Change::Table(table))
            }
            BEGIN => self.holder().map(Change::Begin),
            CLAIM_OF_TERM => Ok(Change::Claim { id: self.u64()?, since: self.u64()?, who: self.text()? }),
            END => Ok(Change::End),
            WRITE => {
                let (file, from, bytes) = (self.u64()?, self.u64()?, self.u32()?);
                let at = u32::try_from(self.at).map_err(|_| "it is larger than 4 GiB".to_owned())?;
                self.take(bytes as usize)?;
                from.checked_add(u64::from(bytes)).ok_or("a write ends beyond all files")?;
                Ok(Change::Write { file, from, at, bytes })
            }
            NO_FILE => Ok(Change::Name { name: self.text()?, file: None }),
            FILE => Ok(Change::Name { name: self.text()?, file: Some(self.u64()?) }),
            NO_BRANCH => Ok(Change::Branch { id: self.u64()?, branch: None }),
            BRANCH => Ok(Change::Branch { id: self.u64()?, branch: Some(self.branch()?) }),
            other => Err(format!("there is no change of kind {other}")),
        }
    }

    fn branch(&mut self) -> Result<Branch, String> {
        Ok(Branch { sheet: self.u64()?, since: self.u64()?, prefix: self.text()? })
    }

    fn table_with_branches(&mut self) -> Result<Table, String> {
        let mut table = self.table()?;
        for _ in 0..self.u32()? {
            table.branches.insert(self.u64()?, self.branch()?);
        }
        Ok(table)
    }

    fn table(&mut self) -> Result<Table, String> {
        let mut names = BTreeMap::new();
        for _ in 0..self.u32()? {
            names.insert(self.text()?, self.u64()?);
        }
        let mut files = BTreeMap::new();
        for _ in 0..self.u32()? {
            let file = self.u64()?;
            let mut extents: Vec<Extent> = Vec::new();
            for _ in 0..self.u32()? {
                let extent = Extent { from: self.u64()?, sheet: self.u64()?, at: self.u32()?, bytes: self.u32()? };
                let end = extents.last().map_or(0, Extent::end);
                if extent.from != end || extent.bytes == 0 || extent.from.checked_add(u64::from(extent.bytes)).is_none()
                {
                    return Err(format!("file {file:x} has a gap at {end}"));
                }
                extents.push(extent);
            }
            files.insert(file, extents);
        }
        let holder = match self.u8()? {
            0 => None,
            1 => Some(self.holder()?),
            other => return Err(format!("{other} holders")),
        };
        let mut fences = BTreeMap::new();
        for _ in 0..self.u32()? {
            fences.insert(self.u64()?, self.u64()?);
        }
        Ok(Table { names, files, holder, fences, ..Table::default() })
    }
}

/// The entry point of the fuzz target. It decodes a sheet, applies it to an empty table, and checks that this table
/// is the same after it was written to a sheet and decoded.
#[cfg(fuzzing)]
pub fn check_sheet(bytes: &[u8]) {
    let Ok(sheet) = decode(bytes) else { return };
    let mut table = Table::default();
    if table.apply(sheet.number, sheet.epoch, &sheet.changes).is_err() {
        return;
    }
    let mut writer = SheetWriter::new(sheet.number, sheet.epoch, [0, 0]);
    writer.table(&table);
    let (bytes, changes) = writer.finish();
    assert_eq!(decode(&bytes).map(|sheet| sheet.changes), Ok(changes));
}

#[cfg(test)]
mod tests;
