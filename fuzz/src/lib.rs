//! Code that all targets share: it takes values from the fuzzer's bytes, and changes other bytes as these say. It
//! knows no format.

/// The fuzzer's bytes. Values are taken from the front. When the bytes run out, every value is 0, so a short input
/// gives a simple test.
#[derive(Clone, Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// An input of all of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that are left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Takes one byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Takes a number below `end`, which is at most 65536.
    pub fn below(&mut self, end: usize) -> usize {
        let high = if end > 256 { usize::from(self.byte()) << 8 } else { 0 };
        (high | usize::from(self.byte())) % end
    }

    /// Takes one of `choices`.
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Takes a number. The number is small, or near the upper end of its type, or arbitrary.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..0xc0 => u64::from(small),
            0xc0..0xe0 => u64::MAX - u64::from(self.byte()),
            0xe0..0xf0 => 1_u64.rotate_left(u32::from(self.byte())).wrapping_sub(1),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// Takes at most `most` bytes.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let count = self.below(most + 1).min(self.0.len());
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    /// Takes a key. The key is mostly short and of few different letters, so that keys collide and share prefixes.
    /// Now and then it is long.
    pub fn key(&mut self) -> Vec<u8> {
        let shape = self.byte();
        let mut key = match shape {
            0..0xf0 => vec![b'k'; usize::from(shape) % 7],
            _ => vec![b'k'; usize::from(shape & 15) * 40],
        };
        key.extend((0..shape % 4).map(|_| [0, b'a', b'k', 0xff][usize::from(self.byte()) % 4]));
        key
    }

    /// Overwrites at most `most` bytes of `target`.
    pub fn change(&mut self, target: &mut [u8], most: usize) {
        for _ in 0..self.below(most + 1) {
            if target.is_empty() || self.is_empty() {
                return;
            }
            let at = self.below(target.len().min(1 << 16));
            target[at] = self.byte();
        }
    }
}
