//! Splits texts separated by a byte, the form in which the command line stores rows of CSV and TSV.

/// Passes the texts `0..end` to `take`, each with its number, and `None` for a missing one.
///
/// # Errors
///
/// Returns the errors of `take`, or an error if a backslash escapes nothing. Both come with the number of the text.
pub fn read(
    texts: Option<&[u8]>,
    separator: u8,
    escaped: bool,
    end: usize,
    mut take: impl FnMut(usize, Option<&[u8]>) -> Result<(), String>,
) -> Result<(), (usize, String)> {
    let mut left = texts;
    for number in 0..end {
        let text = left.map(|all| {
            let at = all.iter().position(|byte| *byte == separator);
            left = at.map(|at| &all[at + 1..]);
            &all[..at.unwrap_or(all.len())]
        });
        let taken = match text {
            Some(text) if escaped && text.contains(&b'\\') => plain(text).and_then(|plain| take(number, Some(&plain))),
            text => take(number, text),
        };
        taken.map_err(|what| (number, what))?;
    }
    Ok(())
}

/// Removes the mark from `bytes`: a leading zero byte. Returns `None` if `bytes` is empty, which stands for no text.
pub fn unmarked(bytes: &[u8]) -> Option<&[u8]> {
    match bytes.first() {
        None => None,
        Some(0) => Some(&bytes[1..]),
        Some(_) => Some(bytes),
    }
}

/// Replaces `\t`, `\n`, `\r` and `\\` in a text by the characters that they stand for.
fn plain(text: &[u8]) -> Result<Vec<u8>, String> {
    let (mut plain, mut bytes) = (Vec::with_capacity(text.len()), text.iter());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b'\\') => b'\\',
                _ => return Err(format!("\"{}\" has a backslash that escapes nothing", text.escape_ascii())),
            },
            byte => *byte,
        });
    }
    Ok(plain)
}
