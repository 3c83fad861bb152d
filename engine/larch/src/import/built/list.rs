//! The list of files that were built together: the checksum and the meta of each file, and the options of the table
//! for which they were built. `docs/format/built.md` shows its bytes. This module does not read or write files.

use crate::base::options::TableOptions;
use crate::base::sealed::{seal, unseal};
use crate::files::copied_file::Content;
use crate::manifest::db_file::sst_name;
use sst::format::features::Unreadable;
use sst::format::{field, varint};
use sst::{Meta, Version};
use std::collections::BTreeSet;

const MAGIC: &[u8; 8] = b"LARCHBLT";

/// The epoch in the names of built files, which no writer of a database has.
const EPOCH: u64 = 0;

/// Files that were built together for one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltList {
    /// A random number, which is also in the footers of the files.
    pub id: u64,
    /// The oldest release that can read the files.
    pub compat: String,
    /// The options of the table for which the files were built.
    pub options: TableOptions,
    /// The files, in key order.
    pub files: Vec<BuiltFile>,
}

/// A file in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltFile {
    /// The number in the name of the file.
    pub number: u64,
    /// The checksum of all bytes of the file, as CRC-64/NVME.
    pub checksum: u64,
    /// The meta of the file, which is also in its footer.
    pub meta: Meta,
}

impl BuiltFile {
    /// The name of the file in the directory of the list.
    pub fn name(&self) -> String {
        sst_name(self.number, EPOCH)
    }

    /// The length and the checksum of the file.
    pub fn content(&self) -> Content {
        Content { bytes: self.meta.file_bytes, checksum: self.checksum }
    }
}

impl BuiltList {
    /// The number of rows in all files.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.meta.rows()).sum()
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.meta.file_bytes).sum()
    }

    /// ```text
    /// head, see crate::base::sealed: magic "LARCHBLT", id
    /// compat          bytes varint | UTF-8
    /// table           bytes varint | options as in the manifest, with numbered fields that later releases may add
    /// files           varint
    /// file: number    varint
    ///       checksum  u64     CRC-64/NVME of all bytes
    ///       meta      bytes varint | as in the manifest
    /// numbered fields         that later releases may add, see sst::format::field
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        seal(MAGIC, 0, self.id, |out| {
            varint::put_bytes(out, self.compat.as_bytes());
            let mut bytes = Vec::new();
            self.options.encode(&mut bytes);
            varint::put_bytes(out, &bytes);
            varint::put(out, self.files.len() as u64);
            for BuiltFile { number, checksum, meta } in &self.files {
                varint::put(out, *number);
                out.extend_from_slice(&checksum.to_le_bytes());
                bytes.clear();
                meta.encode(&mut bytes);
                varint::put_bytes(out, &bytes);
            }
        })
    }

    /// Reads what [`BuiltList::encode`] writes.
    ///
    /// # Errors
    ///
    /// An error if the bytes are damaged, or if a newer release has written them or one of the listed files.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let (id, mut left) = unseal(bytes, MAGIC, 0, "list of built files")?;
        let head = take_head(&mut left).ok_or("it does not decode")?;
        let (compat, options, count) = head;
        let table = TableOptions::decode_whole(options)?;
        let mut files = Vec::new();
        for _ in 0..count {
            let (number, checksum, mut bytes) = take_file(&mut left).ok_or("a file in it does not decode")?;
            let meta = Meta::decode(&mut bytes)?;
            if !bytes.is_empty() {
                return Err("a file in it has bytes after its description".into());
            }
            files.push(BuiltFile { number, checksum, meta });
        }
        field::pass_over_all(left, "field")?;
        let list = Self { id, compat, options: table, files };
        list.check()?;
        Ok(list)
    }

    /// Refuses a list that no builder would write.
    fn check(&self) -> Result<(), String> {
        let numbers: BTreeSet<u64> = self.files.iter().map(|file| file.number).collect();
        if numbers.len() < self.files.len() || numbers.last() == Some(&u64::MAX) {
            return Err("two files in it have one number, or a file has the last one".to_owned());
        }
        let total =
            |value: fn(&Meta) -> u64| self.files.iter().try_fold(0u64, |sum, file| sum.checked_add(value(&file.meta)));
        total(|meta| meta.file_bytes).and(total(Meta::rows)).ok_or("its files are too long")?;
        let groups = self.options.groups.len().max(1);
        for BuiltFile { meta, .. } in &self.files {
            if meta.rows() == 0 || meta.newest != Version(0) || meta.oldest != Version(0) {
                return Err("a file in it has no rows, or rows with versions".to_owned());
            }
            if meta.range_erases.get().is_some()
                || meta.history.get().is_some()
                || meta.main.is_some_and(|tree| tree.totals.erased > 0)
            {
                return Err("a file in it has erased rows, or older versions".to_owned());
            }
            if 1 + meta.groups.len() != groups {
                return Err(format!(
                    "a file in it has rows of {} parts, and its table {groups}",
                    1 + meta.groups.len()
                ));
            }
        }
        if !self.files.windows(2).all(|pair| pair[0].meta.bounds.is_before(&pair[1].meta.bounds)) {
            return Err("its files are not in the order of their keys".to_owned());
        }
        Ok(())
    }
}

/// Takes the head of the list off `left`: the release, the options, and the number of files.
fn take_head<'b>(left: &mut &'b [u8]) -> Option<(String, &'b [u8], u64)> {
    let compat = String::from_utf8(varint::take_bytes(left)?.to_vec()).ok()?;
    Some((compat, varint::take_bytes(left)?, varint::take(left)?))
}

/// Takes one file off `left`: its number, its checksum, and the bytes of its meta.
fn take_file<'b>(left: &mut &'b [u8]) -> Option<(u64, u64, &'b [u8])> {
    let number = varint::take(left)?;
    let (checksum, rest) = left.split_first_chunk()?;
    *left = rest;
    Some((number, u64::from_le_bytes(*checksum), varint::take_bytes(left)?))
}

#[cfg(test)]
mod tests;
