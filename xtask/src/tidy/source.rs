//! Separates the code and the comments of Rust text, so that a word in a string is not taken for code.
//!
//! Invariant: `code` and `comments` have the same length and the same lines as `text`. `code` has spaces in place
//! of comments, and `comments` has spaces in place of code. Both have spaces in place of the contents of strings
//! and characters. So an offset in one of the three texts is the same offset in the other two.

/// A source file in three forms.
pub struct Source<'t> {
    pub text: &'t str,
    pub code: String,
    pub comments: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl<'t> Source<'t> {
    /// Separates the code and the comments of `text`. If the text is not Rust, the result is arbitrary, but nothing
    /// panics.
    pub fn new(text: &'t str) -> Self {
        let mut kinds = Vec::with_capacity(text.len());
        while kinds.len() < text.len() {
            let (kind, bytes) = next_piece(text, kinds.len());
            kinds.extend(std::iter::repeat_n(kind, bytes));
        }
        let only = |wanted: Kind| -> String {
            let keep = |(at, c): (usize, char)| {
                let shown = if c == '\n' || kinds[at] == wanted { c } else { ' ' };
                std::iter::repeat_n(shown, if shown == c { 1 } else { c.len_utf8() })
            };
            text.char_indices().flat_map(keep).collect()
        };
        Self { text, code: only(Kind::Code), comments: only(Kind::Comment) }
    }

    /// The line of an offset, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        1 + self.text[..offset].matches('\n').count()
    }
}

/// The kind and the length of the piece that starts at `at`: a comment, the inside of a literal, or one character of
/// code.
fn next_piece(text: &str, at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    let code = |c: char| (Kind::Code, c.len_utf8());
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment_bytes(rest));
    }
    let c = rest.chars().next().expect("the caller stops at the end of the text");
    match c {
        '"' => (Kind::Literal, string_bytes(rest)),
        'r' if starts_word(text, at) => match raw_string_bytes(rest) {
            Some(bytes) => (Kind::Literal, bytes),
            None => code(c),
        },
        '\'' => match character_bytes(rest) {
            Some(bytes) => (Kind::Literal, bytes),
            None => code(c),
        },
        _ => code(c),
    }
}

/// Whether the `r` at `at` can open a raw string. It can if no word ends just before it, except the prefix `b` or
/// `c`.
fn starts_word(text: &str, at: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let before = text[..at].strip_suffix(['b', 'c']).unwrap_or(&text[..at]);
    !before.ends_with(is_word)
}

fn block_comment_bytes(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string_bytes(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string_bytes(rest: &str) -> Option<usize> {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let inside = rest[1 + hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(inside.find(&end).map_or(rest.len(), |at| rest.len() - inside.len() + at + end.len()))
}

/// The length of the character literal at the start of `rest`. `None` if the quote begins a lifetime.
fn character_bytes(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    match chars.next()? {
        (_, '\\') => {
            let (after, _) = chars.nth(1)?;
            rest[after..].find('\'').map(|at| after + at + 1)
        }
        _ => chars.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1),
    }
}
