//! The list of a backup: its database, and its files with their lengths and checksums. `docs/format/backup.md` shows
//! the bytes. This module does not read or write files.

use crate::base::sealed::{features_of, seal, unseal};
use crate::files::copied_file::Content;
use crate::manifest::db_file::{shared_name, sst_name};
use crate::manifest::log::manifest_name;
use sst::Version;
use sst::format::features::Unreadable;
use sst::format::{field, varint};
use std::collections::BTreeSet;
use std::time::Duration;

const MAGIC: &[u8; 8] = b"LARCHBAK";

/// Feature bit of a list whose files may be in the directories of other backups.
const LIES_WITH_OTHERS: u32 = 1 << 16;

/// The list of one backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupList {
    /// The identity of the database.
    pub database: u64,
    /// The number of the backup.
    pub number: u64,
    /// The backup has all commits up to this version, and none after it.
    pub version: Version,
    /// When the backup was made, as the time since the Unix epoch in whole seconds.
    pub time: Duration,
    /// Its files. Exactly one of them is a manifest.
    pub files: Vec<StoredFile>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Its name in the database.
    pub name: String,
    /// Where the file is, and whether other backups may share it.
    pub lies: Lies,
    /// The length and the checksum of the file.
    pub content: Content,
}

/// Where a file of a backup is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    /// Beside the list of this backup. No other backup has the file.
    Alone,
    /// In the directory of backup `backup`, which copied it. This may be the listed backup itself. The file is an
    /// SST, and other backups may share it.
    With { backup: u64, id: u64 },
    /// In the directory `files`, where lists without the feature bit have the SSTs that backups share.
    InFiles { id: u64 },
}

impl Lies {
    /// The backup in whose directory the file is, or `None` if the file is not shared or is in `files`.
    pub fn with(self) -> Option<u64> {
        match self {
            Self::With { backup, .. } => Some(backup),
            Self::Alone | Self::InFiles { .. } => None,
        }
    }
}

impl StoredFile {
    /// The name under which the file is stored.
    pub fn stored_name(&self) -> String {
        match self.lies {
            Lies::Alone | Lies::With { .. } => self.name.clone(),
            Lies::InFiles { id } => shared_name(&self.name, id),
        }
    }

    /// Identifies an SST that backups may share: its name in the database and its id. The name alone is not enough,
    /// because two copies of a database that are written independently give files the same names.
    pub fn identity(&self) -> Option<(String, u64)> {
        match self.lies {
            Lies::Alone => None,
            Lies::With { id, .. } | Lies::InFiles { id } => Some((self.name.clone(), id)),
        }
    }
}

impl BackupList {
    /// The name of the manifest among the files.
    pub fn manifest(&self) -> &str {
        let mut manifests = self.files.iter().filter(|file| is_manifest(&file.name));
        &manifests.next().expect("a list has a manifest").name
    }

    /// Total bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.content.bytes).sum()
    }

    /// ```text
    /// head, see crate::base::sealed: magic "LARCHBAK", database
    /// number, version, seconds since 1970, files   varints
    /// file: name            bytes varint | UTF-8
    ///       lies            u8      0: beside the list, 1: in `files`, 2: in the directory of a backup
    ///       id of the SST   u64     of 1 and 2
    ///       backup          varint  of 2
    ///       bytes           varint
    ///       checksum        u64     CRC-64/NVME of all bytes
    /// numbered fields               that later releases may add, see sst::format::field
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        seal(MAGIC, self.features(), self.database, |out| self.encode_content(out))
    }

    /// The feature bits that the list needs.
    fn features(&self) -> u32 {
        let lies_with_others = self.files.iter().any(|file| file.lies.with().is_some());
        if lies_with_others { LIES_WITH_OTHERS } else { 0 }
    }

    fn encode_content(&self, out: &mut Vec<u8>) {
        for value in [self.number, self.version.0, self.time.as_secs(), self.files.len() as u64] {
            varint::put(out, value);
        }
        for StoredFile { name, lies, content } in &self.files {
            varint::put_bytes(out, name.as_bytes());
            match *lies {
                Lies::Alone => out.push(0),
                Lies::InFiles { id } => {
                    out.push(1);
                    out.extend(id.to_le_bytes());
                }
                Lies::With { backup, id } => {
                    out.push(2);
                    out.extend(id.to_le_bytes());
                    varint::put(out, backup);
                }
            }
            varint::put(out, content.bytes);
            out.extend_from_slice(&content.checksum.to_le_bytes());
        }
    }

    /// Reads what [`BackupList::encode`] writes.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are damaged, or if a newer release has written them.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let (database, mut left) = unseal(bytes, MAGIC, LIES_WITH_OTHERS, "list of a backup")?;
        let list = take(&mut left, database).ok_or("a file in it does not decode")?;
        field::pass_over_all(left, "field")?;
        if list.files.iter().filter(|file| is_manifest(&file.name)).count() != 1 {
            return Err("it does not have one manifest".into());
        }
        if list.features() & !features_of(bytes) != 0 {
            return Err("files of it lie with other backups, and its head does not say so".into());
        }
        Ok(list)
    }
}

/// Decodes the known fields and takes them off the front of `left`. Leaves fields of later releases.
fn take(left: &mut &[u8], database: u64) -> Option<BackupList> {
    let [number, version, seconds, count] = [(); 4].map(|()| varint::take(left));
    let mut files = Vec::new();
    for _ in 0..count? {
        let name = String::from_utf8(varint::take_bytes(left)?.to_vec()).ok()?;
        let (&lies, rest) = left.split_first()?;
        *left = rest;
        let lies = match lies {
            0 => Lies::Alone,
            1 => Lies::InFiles { id: take_u64(left)? },
            2 => Lies::With { id: take_u64(left)?, backup: varint::take(left)? },
            _ => return None,
        };
        let content = Content { bytes: varint::take(left)?, checksum: take_u64(left)? };
        if !is_name(&name) || (lies != Lies::Alone && is_manifest(&name)) {
            return None;
        }
        files.push(StoredFile { name, lies, content });
    }
    let names: BTreeSet<&str> = files.iter().map(|file| &*file.name).collect();
    files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.content.bytes))?;
    let number = number.filter(|number| *number < u64::MAX && names.len() == files.len())?;
    // No file of a backup can be in the directory of a later backup.
    let is_earlier = |file: &StoredFile| !matches!(file.lies, Lies::With { backup, .. } if backup > number);
    let (version, time) = (Version(version?), Duration::from_secs(seconds?));
    if !files.iter().all(is_earlier) {
        return None;
    }
    Some(BackupList { database, number, version, time, files })
}

fn take_u64(left: &mut &[u8]) -> Option<u64> {
    let (bytes, rest) = left.split_first_chunk()?;
    *left = rest;
    Some(u64::from_le_bytes(*bytes))
}

/// Whether an SST or a manifest of a database can have this name. The greatest number is excluded, so that later
/// files can have greater numbers. Such a name never leads out of its directory, even if it comes from a damaged
/// list.
fn is_name(name: &str) -> bool {
    let is_written = |number: u64, written: String| number < u64::MAX && written == name;
    if let Some(number) = name.strip_prefix("MANIFEST-") {
        return number.parse().is_ok_and(|number| is_written(number, manifest_name(number)));
    }
    let numbers = name.strip_suffix(".sst").and_then(|name| name.split_once('-'));
    let numbers = numbers.and_then(|(number, epoch)| Some((number.parse().ok()?, epoch.parse().ok()?)));
    numbers.is_some_and(|(number, epoch)| is_written(number, sst_name(number, epoch)))
}

fn is_manifest(name: &str) -> bool {
    name.starts_with("MANIFEST-")
}

#[cfg(test)]
mod tests;
