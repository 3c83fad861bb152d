//! What a terminal shows about a transaction: the columns that the specification wants to be displayed. A screen
//! is a sequence of bytes, so that the screens of different databases can be compared.

use harness::{Reply, Strings};
use std::convert::Infallible;

/// Numbers and texts, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    bytes: Vec<u8>,
}

impl Screen {
    /// Removes everything from the screen.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Shows a number.
    #[inline]
    pub fn number(&mut self, number: i64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Shows a text.
    #[inline]
    pub fn text(&mut self, text: &[u8]) {
        self.number(text.len() as i64);
        self.bytes.extend_from_slice(text);
    }

    /// Makes `reply` a single row that contains everything on the screen.
    pub fn show(&self, reply: &mut Reply) {
        reply.clear();
        let fill = |record: &mut Strings| {
            record.push(&self.bytes);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = reply.row_of_fields(b"", fill);
    }

    /// Everything that is shown.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
