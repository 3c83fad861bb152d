//! The job description that a writer gives to a worker: which files to merge, and how. This module reads and writes
//! no files.

use super::exchange::JobName;
use crate::base::boundaries::Boundaries;
use crate::base::event::CompactionReason;
use crate::base::sealed::{seal, unseal};
use crate::base::table::TableId;
use crate::manifest::directory::position::Position;
use sst::Version;
use sst::format::features::Unreadable;
use sst::format::{field, varint};
use std::ops::Range;

const MAGIC: &[u8; 8] = b"LARCHJOB";

/// The field with the version from which on readers read at every version.
const ALL_FROM: u8 = 1;

/// A compaction that a writer offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedJob {
    /// The identity of the database.
    pub database: u64,
    /// The epoch of the writer, which is in the names of the new files.
    pub epoch: u64,
    /// The numbers of the new files.
    pub numbers: Range<u64>,
    /// A worker must read the manifest at least up to here to find all inputs.
    pub position: Position,
    /// The table.
    pub table: TableId,
    /// The level of the new files.
    pub to: usize,
    /// Why the files are merged.
    pub reason: CompactionReason,
    /// Whether no deeper level has keys in the key range of the inputs.
    pub bottom: bool,
    /// Target size of a new file, in bytes.
    pub file_bytes: u64,
    /// The versions at which readers read, see [`Views::boundaries`](crate::core::views::Views::boundaries).
    pub boundaries: Boundaries,
    /// Level and number of each file to merge.
    pub inputs: Vec<(usize, u64)>,
    /// The oldest release that must be able to read the new files.
    pub compat: String,
}

impl OfferedJob {
    /// The name of this job.
    pub fn name(&self) -> JobName {
        JobName { first: self.numbers.start, epoch: self.epoch }
    }

    /// ```text
    /// head, see crate::base::sealed: magic "LARCHJOB", identity of the database
    /// epoch | first number | end of numbers          varints, as all that is not said to be something else
    /// number of a manifest | end of the edits in it
    /// table | level of the new files | reason        0 level 0, 1 size of a level, 2 sparse, 3 erased rows, 4 asked
    /// bottom          u8: 1 if no deeper level has keys in the range of the files
    /// target size of a file
    /// boundaries      count | each version; field 1: the version from which on each is one
    /// inputs          count | each: level, number
    /// compat          bytes varint | UTF-8
    /// numbered fields that later releases may add, see sst::format::field
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        seal(MAGIC, 0, self.database, |out| {
            let reason = REASONS.iter().position(|reason| *reason == self.reason).expect("all are listed");
            for value in [
                self.epoch,
                self.numbers.start,
                self.numbers.end,
                self.position.manifest,
                self.position.end,
                self.table.0.into(),
                self.to as u64,
                reason as u64,
            ] {
                varint::put(out, value);
            }
            out.push(self.bottom.into());
            varint::put(out, self.file_bytes);
            let versions = self.boundaries.versions();
            varint::put(out, versions.len() as u64);
            versions.iter().for_each(|version| varint::put(out, version.0));
            varint::put(out, self.inputs.len() as u64);
            for (level, number) in &self.inputs {
                varint::put(out, *level as u64);
                varint::put(out, *number);
            }
            varint::put_bytes(out, self.compat.as_bytes());
            if let Some(from) = self.boundaries.all_from() {
                field::put_number(out, ALL_FROM, from.0);
            }
        })
    }

    /// Reads what [`OfferedJob::encode`] writes.
    ///
    /// # Errors
    ///
    /// An error if the bytes are damaged or incomplete, or if a newer release has written them.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let (database, mut left) = unseal(bytes, MAGIC, 0, "job of a compaction")?;
        let job = Self::take(database, &mut left).ok_or("it does not decode")?;
        field::pass_over_all(left, "field")?;
        Ok(job)
    }

    fn take(database: u64, left: &mut &[u8]) -> Option<Self> {
        let (epoch, first, end) = (varint::take(left)?, varint::take(left)?, varint::take(left)?);
        let position = Position { manifest: varint::take(left)?, end: varint::take(left)? };
        let table = TableId(varint::take(left)?.try_into().ok()?);
        let to = take_level(left)?;
        let reason = *REASONS.get(usize::try_from(varint::take(left)?).ok()?)?;
        let (&bottom, rest) = left.split_first()?;
        *left = rest;
        let file_bytes = varint::take(left)?;
        let versions = (0..varint::take(left)?).map(|_| varint::take(left).map(Version)).collect::<Option<_>>()?;
        let inputs = (0..varint::take(left)?).map(|_| Some((take_level(left)?, varint::take(left)?)));
        let inputs = inputs.collect::<Option<Vec<_>>>()?;
        let compat = String::from_utf8(varint::take_bytes(left)?.to_vec()).ok()?;
        let boundaries = Boundaries::new(versions, field::take_number(left, ALL_FROM)?.map(Version));
        let is_sound = bottom < 2 && first < end && file_bytes > 0 && !inputs.is_empty();
        let (numbers, bottom) = (first..end, bottom == 1);
        is_sound.then_some(Self {
            database,
            epoch,
            numbers,
            position,
            table,
            to,
            reason,
            bottom,
            file_bytes,
            boundaries,
            inputs,
            compat,
        })
    }
}

/// The reasons, indexed by the numbers that encode them.
const REASONS: [CompactionReason; 6] = [
    CompactionReason::Level0,
    CompactionReason::LevelSize,
    CompactionReason::Sparse,
    CompactionReason::ErasedRows,
    CompactionReason::Asked,
    CompactionReason::Expired,
];

fn take_level(left: &mut &[u8]) -> Option<usize> {
    usize::try_from(varint::take(left)?).ok().filter(|level| *level < crate::base::table::LEVELS)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::base::sealed::tests::expect_damage_found;

    /// A job for the tests of the files that describe jobs.
    pub fn job() -> OfferedJob {
        OfferedJob {
            database: 7,
            epoch: 9,
            numbers: 52..90,
            position: Position { manifest: 31, end: 4711 },
            table: TableId(3),
            to: 6,
            reason: CompactionReason::LevelSize,
            bottom: true,
            file_bytes: 64 << 20,
            boundaries: Boundaries::new(vec![Version(10), Version(12)], None),
            inputs: vec![(0, 40), (6, 12)],
            compat: "0.2.0".to_owned(),
        }
    }

    #[test]
    fn a_job_is_read_as_it_was_written_and_damage_is_found() {
        let bytes = job().encode();
        assert_eq!(OfferedJob::decode(&bytes), Ok(job()));
        expect_damage_found(&bytes, OfferedJob::decode);
        let boundaries = Boundaries::new(vec![Version(10)], Some(Version(300)));
        let windowed = OfferedJob { boundaries, ..job() };
        assert_eq!(OfferedJob::decode(&windowed.encode()), Ok(windowed));
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let bytes = job().encode();
        let (head, body) = bytes.split_at(24);
        assert_eq!(head, b"LARCHJOB\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0");
        let expected = [9, 52, 90, 31, 0xe7, 0x24, 3, 6, 1, 1, 0x80, 0x80, 0x80, 0x20, 2, 10, 12, 2, 0, 40, 6, 12, 5];
        assert_eq!(body[..expected.len()], expected);
        assert_eq!(body[expected.len()..body.len() - 4], *b"0.2.0");
    }
}
