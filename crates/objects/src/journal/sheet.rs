//! The bytes of a sheet, see `docs/format/store.md`. It does not know where they are kept.
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
//! A sheet that has to do with branches has another magic. It has one of these, or the name `PARENTS`:
//!
//! ```text
//! branch:  6u8 | id u64                    it needs nothing any more
//! branch:  7u8 | id u64 | branch           branch: sheet u64 | since u64 | prefix text
//! table:   8u8 | as 1u8 | branches u32 | { id u64 | branch }
//! ```

use super::table::{Branch, Change, Extent, Holder, PARENTS, Table};
use std::collections::BTreeMap;

const MAGIC: [u8; 8] = *b"LARCHJS1";

/// That of a sheet which a reader must not take who does not know branches: it would remove or miss files.
const MAGIC_OF_BRANCHES: [u8; 8] = *b"LARCHJS2";

const TABLE: u8 = 1;
const BEGIN: u8 = 2;
const WRITE: u8 = 3;
const NO_FILE: u8 = 4;
const FILE: u8 = 5;
const NO_BRANCH: u8 = 6;
const BRANCH: u8 = 7;
const TABLE_WITH_BRANCHES: u8 = 8;

/// The epoch of the sheet of a guest, who makes a branch. No writer has it.
pub const GUEST: u64 = 0;

/// A sheet that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    pub number: u64,
    /// That of its writer.
    pub epoch: u64,
    pub changes: Vec<Change>,
}

impl Sheet {
    /// Whether all sheets before it can be left out.
    pub fn has_table(&self) -> bool {
        matches!(self.changes.first(), Some(Change::Table(_)))
    }

    /// Whether it was put by one who makes a branch: the writer goes on after it.
    pub fn is_of_guest(&self) -> bool {
        self.epoch == GUEST
    }
}

/// Writes a sheet.
#[derive(Debug)]
pub struct SheetWriter {
    bytes: Vec<u8>,
    changes: Vec<Change>,
    magic: [u8; 8],
}

/// Where the number of changes is.
const COUNT_AT: usize = 40;

impl SheetWriter {
    /// An empty sheet. `token` is a number that no other sheet has.
    pub fn new(number: u64, epoch: u64, token: [u64; 2]) -> SheetWriter {
        let mut bytes = MAGIC.to_vec();
        for value in [number, epoch, token[0], token[1]] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend([0; 4]);
        SheetWriter { bytes, changes: Vec::new(), magic: MAGIC }
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

    /// The table before the changes that follow. It comes first.
    pub fn table(&mut self, table: &Table) {
        assert!(self.changes.is_empty(), "the table comes first");
        let has_branches = !table.branches.is_empty();
        if has_branches || table.names.contains_key(PARENTS) {
            self.magic = MAGIC_OF_BRANCHES;
        }
        self.u8(if has_branches { TABLE_WITH_BRANCHES } else { TABLE });
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
        self.u32(table.begins.len());
        for (sheet, since) in &table.begins {
            self.u64(*sheet);
            self.u64(*since);
        }
        if has_branches {
            self.u32(table.branches.len());
            for (id, branch) in &table.branches {
                self.u64(*id);
                self.put_branch(branch);
            }
        }
        self.changes.push(Change::Table(table.clone()));
    }

    fn put_branch(&mut self, branch: &Branch) {
        self.u64(branch.sheet);
        self.u64(branch.since);
        self.text(&branch.prefix);
    }

    /// A branch is to be made, or needs nothing any more.
    pub fn branch(&mut self, id: u64, branch: Option<&Branch>) {
        self.magic = MAGIC_OF_BRANCHES;
        self.u8(if branch.is_some() { BRANCH } else { NO_BRANCH });
        self.u64(id);
        if let Some(branch) = branch {
            self.put_branch(branch);
        }
        self.changes.push(Change::Branch { id, branch: branch.cloned() });
    }

    /// A writer takes over.
    pub fn begin(&mut self, holder: &Holder) {
        self.u8(BEGIN);
        self.holder(holder);
        self.changes.push(Change::Begin(holder.clone()));
    }

    /// A file is cut at `from` and goes on with `bytes`.
    pub fn write(&mut self, file: u64, from: u64, bytes: &[u8]) {
        self.u8(WRITE);
        self.u64(file);
        self.u64(from);
        self.u32(bytes.len());
        let at = u32::try_from(self.bytes.len()).expect("a sheet is smaller than 4 GiB");
        self.bytes.extend(bytes);
        self.changes.push(Change::Write { file, from, at, bytes: bytes.len() as u32 });
    }

    /// A name stands for a file, or for none.
    pub fn name(&mut self, name: &str, file: Option<u64>) {
        if name == PARENTS {
            self.magic = MAGIC_OF_BRANCHES;
        }
        self.u8(if file.is_some() { FILE } else { NO_FILE });
        self.text(name);
        if let Some(file) = file {
            self.u64(file);
        }
        self.changes.push(Change::Name { name: name.to_owned(), file });
    }

    /// The bytes of the sheet, and its changes.
    pub fn finish(mut self) -> (Vec<u8>, Vec<Change>) {
        let count = u32::try_from(self.changes.len()).expect("a sheet is smaller than 4 GiB");
        self.bytes[..MAGIC.len()].copy_from_slice(&self.magic);
        self.bytes[COUNT_AT..COUNT_AT + 4].copy_from_slice(&count.to_le_bytes());
        let crc = crc_fast::crc32_iscsi(&self.bytes);
        self.bytes.extend(crc.to_le_bytes());
        (self.bytes, self.changes)
    }
}

/// Reads a sheet.
///
/// # Errors
///
/// These are not the bytes of a sheet.
pub fn decode(bytes: &[u8]) -> Result<Sheet, String> {
    let Some((body, crc)) = bytes.split_last_chunk::<4>() else {
        return Err(format!("{} bytes are too few for a sheet", bytes.len()));
    };
    if !body.starts_with(&MAGIC) && !body.starts_with(&MAGIC_OF_BRANCHES) {
        return Err("it does not begin as a sheet does, or a newer release has written it".to_owned());
    }
    if crc_fast::crc32_iscsi(body) != u32::from_le_bytes(*crc) {
        return Err("its checksum is wrong".to_owned());
    }
    let mut reader = SheetReader { bytes: body, at: MAGIC.len() };
    let (number, epoch) = (reader.u64()?, reader.u64()?);
    // The token only makes the bytes different from those of others.
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
            TABLE_WITH_BRANCHES => {
                let mut table = self.table()?;
                for _ in 0..self.u32()? {
                    table.branches.insert(self.u64()?, self.branch()?);
                }
                if table.branches.is_empty() {
                    return Err("its table has no branches".to_owned());
                }
                Ok(Change::Table(table))
            }
            BEGIN => self.holder().map(Change::Begin),
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
        let mut begins = BTreeMap::new();
        for _ in 0..self.u32()? {
            begins.insert(self.u64()?, self.u64()?);
        }
        Ok(Table { names, files, holder, begins, branches: BTreeMap::new() })
    }
}

#[cfg(test)]
mod tests;
