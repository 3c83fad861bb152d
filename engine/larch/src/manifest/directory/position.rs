//! Positions in the sequence of all edits of a database, which leases name. This module does not know what the
//! edits are.

use std::fmt;

/// The position after all edits in manifest `manifest` before byte `end`. Each manifest begins with the file set of
/// the manifest before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The number of the manifest.
    pub manifest: u64,
    /// The offset in this manifest at which the included edits end, in bytes.
    pub end: u64,
}

/// The length of a position as text, in bytes. All positions have the same length, so a newer position can
/// overwrite an older one in a file.
const TEXT_BYTES: usize = 51;

impl Position {
    /// The position as the text that a lease contains.
    pub fn to_text(self) -> String {
        let place = format!("{self}");
        let text = format!("{place} {:08x}\n", checksum(&place));
        debug_assert_eq!(text.len(), TEXT_BYTES);
        text
    }

    /// Parses the text of a lease; `None` if it is incomplete, for example because the follower is just writing it.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() == TEXT_BYTES)?;
        let (place, sum) = text.strip_suffix('\n')?.rsplit_once(' ')?;
        let (manifest, end) = place.split_once(' ')?;
        (u32::from_str_radix(sum, 16).ok()? == checksum(place)).then_some(())?;
        Some(Self { manifest: manifest.parse().ok()?, end: end.parse().ok()? })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020} {:020}", self.manifest, self.end)
    }
}

fn checksum(place: &str) -> u32 {
    crc_fast::crc32_iscsi(place.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written_and_not_after_a_change_of_a_byte() {
        let position = Position { manifest: 31, end: 4711 };
        let text = position.to_text();
        assert_eq!(text, "00000000000000000031 00000000000000004711 a84af4cb\n");
        assert_eq!(Position::from_text(text.as_bytes()), Some(position));
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            assert_eq!(Position::from_text(&changed), None, "byte {at}");
            assert_eq!(Position::from_text(&text.as_bytes()[..at]), None, "the first {at} bytes");
        }
        let greatest = Position { manifest: u64::MAX, end: u64::MAX };
        assert_eq!(Position::from_text(greatest.to_text().as_bytes()), Some(greatest));
    }
}
