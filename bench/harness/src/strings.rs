//! Byte strings in one buffer, for example the fields of a row, or the keys of a request that reads many rows.

#[cfg(test)]
mod tests;

/// Byte strings in one buffer. The strings lie one after another and are numbered from 0. Clearing and refilling a
/// value allocates nothing once its buffers are large enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    /// Where each string ends in `bytes`.
    ends: Vec<u32>,
}

/// The error for a stored value that does not hold the fields of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a stored value of {bytes} bytes is not the {fields} fields of a row; another program wrote it, or it is damaged"
)]
pub struct NotARow {
    /// Length of the value.
    pub bytes: usize,
    /// The number of fields of a row in the table.
    pub fields: usize,
}

impl Strings {
    /// An empty value.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all strings, but keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a copy of `string` at the end.
    #[inline]
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(end(self.bytes.len()));
    }

    /// Lets `fill` append bytes to the buffer, and adds these bytes as one string. `fill` must not remove anything.
    #[inline]
    pub fn push_with(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        fill(&mut self.bytes);
        debug_assert!(self.bytes.len() >= before, "only appended");
        self.ends.push(end(self.bytes.len()));
    }

    /// The number of strings.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of bytes of all strings together.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// String number `index`, if it exists.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)? as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        Some(&self.bytes[start..end])
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).expect("an index below the length"))
    }

    /// Appends to `out` the value in which a key-value store keeps a row of these fields. If a row has one field, the
    /// value is that field. Otherwise:
    ///
    /// ```text
    ///   end of field 0   u32, little endian, from the first byte after the ends
    ///   …                one for each field
    ///   bytes of the fields, without gaps
    /// ```
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        if self.ends.len() != 1 {
            for end in &self.ends {
                out.extend_from_slice(&end.to_le_bytes());
            }
        }
        out.extend_from_slice(&self.bytes);
    }

    /// Adds the fields of a row. `value` must be what [`Strings::encode`] made from a row of `fields` fields.
    #[inline]
    pub fn decode(&mut self, value: &[u8], fields: usize) -> Result<(), NotARow> {
        if fields == 1 {
            self.push(value);
            return Ok(());
        }
        let (ends, bytes) = split(value, fields)?;
        let mut before = 0;
        let (ends_here, base) = (self.ends.len(), self.bytes.len());
        for field in ends.chunks_exact(4) {
            let end_here = u32::from_le_bytes(field.try_into().expect("chunks of four"));
            if end_here < before || end_here as usize > bytes.len() {
                self.ends.truncate(ends_here);
                return Err(NotARow { bytes: value.len(), fields });
            }
            before = end_here;
            self.ends.push(end(base + end_here as usize));
        }
        if before as usize != bytes.len() {
            self.ends.truncate(ends_here);
            return Err(NotARow { bytes: value.len(), fields });
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds only field `field` of an encoded row, which has `fields` fields.
    #[inline]
    pub fn decode_one(&mut self, value: &[u8], fields: usize, field: usize) -> Result<(), NotARow> {
        if fields == 1 && field == 0 {
            self.push(value);
            return Ok(());
        }
        let (ends, bytes) = split(value, fields)?;
        let end_of = |field: usize| {
            let end = ends[4 * field..4 * field + 4].try_into().expect("four bytes of an end");
            u32::from_le_bytes(end) as usize
        };
        let start = if field == 0 { 0 } else { end_of(field - 1) };
        let string = bytes.get(start..end_of(field)).ok_or(NotARow { bytes: value.len(), fields })?;
        self.push(string);
        Ok(())
    }

    /// Replaces string number `index`, which must exist, by `string`.
    pub fn replace(&mut self, index: usize, string: &[u8]) {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        let old_end = self.ends[index] as usize;
        self.bytes.splice(start..old_end, string.iter().copied());
        for later in &mut self.ends[index..] {
            *later = end(*later as usize + string.len() - (old_end - start));
        }
    }
}

fn end(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("the fields of a row, or the keys of a request, stay below 4 GiB")
}

fn split(value: &[u8], fields: usize) -> Result<(&[u8], &[u8]), NotARow> {
    value.split_at_checked(4 * fields).ok_or(NotARow { bytes: value.len(), fields })
}
