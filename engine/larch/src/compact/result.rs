//! The result that a worker reports to the writer: the new files, or why it has made none. This module does not
//! read or write files.

use crate::base::sealed::{seal, unseal};
use crate::compact::execute::kept_files;
use crate::levels::offers::job::OfferedJob;
use crate::levels::work::MergeWork;
use crate::manifest::NewFile;
use sst::format::features::Unreadable;
use sst::format::{field, varint};
use sst::{KeyBounds, Meta};
use std::collections::{BTreeSet, HashSet};

const MAGIC: &[u8; 8] = b"LARCHRES";

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobResult {
    /// The inputs were merged.
    Merged {
        /// The numbers and metas of the new files, in key order. They are durable.
        files: Vec<(u64, Meta)>,
        /// The numbers of the inputs that were kept as they are, without being rewritten.
        taken_over: Vec<u64>,
    },
    /// The inputs were not merged, for this reason.
    Failed(String),
}

impl JobResult {
    /// ```text
    /// head, see crate::base::sealed: magic "LARCHRES", identity of the database
    /// epoch | first number of the job   varints
    /// outcome                           u8: 0 merged, 1 failed
    /// merged: files                     varint | each: number varint, meta length-prefixed, as in the manifest
    ///         inputs that stay          varint | number of each, varints
    /// failed: why                       bytes varint | UTF-8
    /// numbered fields that later releases may add, see sst::format::field
    /// ```
    pub fn encode(&self, job: &OfferedJob) -> Vec<u8> {
        seal(MAGIC, 0, job.database, |out| {
            varint::put(out, job.epoch);
            varint::put(out, job.numbers.start);
            match self {
                Self::Merged { files, taken_over } => {
                    out.push(0);
                    varint::put(out, files.len() as u64);
                    let mut bytes = Vec::new();
                    for (number, meta) in files {
                        varint::put(out, *number);
                        bytes.clear();
                        meta.encode(&mut bytes);
                        varint::put_bytes(out, &bytes);
                    }
                    varint::put(out, taken_over.len() as u64);
                    taken_over.iter().for_each(|number| varint::put(out, *number));
                }
                Self::Failed(why) => {
                    out.push(1);
                    varint::put_bytes(out, why.as_bytes());
                }
            }
        })
    }

    /// Reads what [`JobResult::encode`] writes for this job.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are damaged or incomplete, if they are the result of another job, or if a newer release
    /// has written them.
    pub fn decode(bytes: &[u8], job: &OfferedJob) -> Result<Self, Unreadable> {
        let (database, mut left) = unseal(bytes, MAGIC, 0, "result of a compaction")?;
        let (epoch, first) = take_pair(&mut left).ok_or("it does not decode")?;
        if (database, epoch, first) != (job.database, job.epoch, job.numbers.start) {
            return Err("it is of another job".into());
        }
        let result = Self::take(&mut left)?;
        field::pass_over_all(left, "field")?;
        Ok(result)
    }

    fn take(left: &mut &[u8]) -> Result<Self, Unreadable> {
        let malformed = || Unreadable::from("it does not decode");
        let (&outcome, rest) = left.split_first().ok_or_else(malformed)?;
        *left = rest;
        match outcome {
            0 => {
                let mut files = Vec::new();
                for _ in 0..varint::take(left).ok_or_else(malformed)? {
                    let number = varint::take(left).ok_or_else(malformed)?;
                    let mut bytes = varint::take_bytes(left).ok_or_else(malformed)?;
                    files.push((number, Meta::decode(&mut bytes)?));
                    if !bytes.is_empty() {
                        return Err("a file in it has bytes after its description".into());
                    }
                }
                let count = varint::take(left).ok_or_else(malformed)?;
                let taken_over = (0..count).map(|_| varint::take(left)).collect::<Option<_>>();
                Ok(Self::Merged { files, taken_over: taken_over.ok_or_else(malformed)? })
            }
            1 => {
                let why = varint::take_bytes(left).and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
                Ok(Self::Failed(why.ok_or_else(malformed)?))
            }
            _ => Err(Unreadable::Newer(format!("outcome {outcome}"))),
        }
    }
}

fn take_pair(left: &mut &[u8]) -> Option<(u64, u64)> {
    Some((varint::take(left)?, varint::take(left)?))
}

/// Checks that the files of a result may replace the inputs of `work`, except those in `taken_over`, which stay as
/// they are. Returns the files.
///
/// # Errors
///
/// An error that says why a merge of these inputs cannot have made these files.
pub fn check(
    job: &OfferedJob,
    work: &MergeWork,
    files: Vec<(u64, Meta)>,
    taken_over: &HashSet<u64>,
) -> Result<Vec<NewFile>, String> {
    let numbers: BTreeSet<u64> = files.iter().map(|(number, _)| *number).collect();
    if numbers.len() < files.len() || numbers.iter().any(|number| !job.numbers.contains(number)) {
        return Err("a file has a number that is not its own".to_owned());
    }
    let kept = kept_files(work);
    let stay: Vec<_> = work.files().filter(|file| taken_over.contains(&file.number)).collect();
    if stay.len() < taken_over.len() || stay.iter().any(|file| !kept.may_keep(file)) {
        return Err("an input stays that cannot stay".to_owned());
    }
    let bounds = work.bounds().ok_or("there are no inputs")?;
    let newest = work.files().map(|file| file.age()).max().unwrap_or(0);
    let groups = work.table.options.groups.len().max(1);
    for (number, meta) in &files {
        if 1 + meta.groups.len() != groups {
            return Err(format!("file {number} has rows of {} parts, and its table {groups}", 1 + meta.groups.len()));
        }
        if meta.newest.0 > newest || bounds.union(&meta.bounds) != bounds {
            return Err(format!("file {number} has rows that the inputs do not have"));
        }
    }
    let mut order: Vec<&KeyBounds> = files.iter().map(|(_, meta)| &meta.bounds).collect();
    order.extend(stay.iter().map(|file| file.sst.bounds()));
    order.sort_by(|a, b| a.low.cmp(&b.low));
    if !order.windows(2).all(|pair| pair[0].is_before(pair[1])) {
        return Err("its files overlap".to_owned());
    }
    let (table, level, epoch) = (job.table, job.to as u8, job.epoch);
    let new = |(number, meta)| NewFile { table, level, number, epoch, version_offset: 0, meta };
    Ok(files.into_iter().map(new).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::sealed::tests::expect_damage_found;
    use crate::levels::offers::job::tests::job;

    #[test]
    fn a_result_is_read_as_it_was_written_and_damage_is_found() {
        let merged = JobResult::Merged { files: Vec::new(), taken_over: vec![40] };
        for result in [merged, JobResult::Failed("the disk is full".to_owned())] {
            let bytes = result.encode(&job());
            assert_eq!(JobResult::decode(&bytes, &job()), Ok(result));
            expect_damage_found(&bytes, |bytes| JobResult::decode(bytes, &job()));
            let other = OfferedJob { numbers: 53..90, ..job() };
            assert_eq!(JobResult::decode(&bytes, &other), Err("it is of another job".into()));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let bytes = JobResult::Failed("no".to_owned()).encode(&job());
        assert_eq!(bytes[..24], *b"LARCHRES\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0");
        assert_eq!(bytes[24..bytes.len() - 4], [9, 52, 1, 2, b'n', b'o']);
        let bytes = JobResult::Merged { files: Vec::new(), taken_over: vec![40] }.encode(&job());
        assert_eq!(bytes[24..bytes.len() - 4], [9, 52, 0, 0, 1, 40]);
    }
}
