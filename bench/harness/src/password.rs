//! Hides passwords in texts that others may see: in targets, arguments and properties.

use std::ops::Range;

/// The text of a target or argument, with its passwords replaced by `***`. Everything between `//user:` and the
/// last `@` is replaced, because a password may have characters that should have been encoded. Values of options
/// and properties are replaced if the name of the option or property says that the value is a password.
pub fn without_password(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for hidden in hidden(text) {
        if hidden.end <= at {
            continue;
        }
        // Two ranges that touch become one `***`.
        if hidden.start >= at && !(at > 0 && hidden.start == at) {
            shown.push_str(&text[at..hidden.start]);
            shown.push_str("***");
        }
        at = hidden.end;
    }
    shown.push_str(&text[at..]);
    shown
}

/// The ranges of `text` that are not shown, in the order of their beginnings.
fn hidden(text: &str) -> Vec<Range<usize>> {
    let mut hidden: Vec<Range<usize>> = Vec::new();
    if let Some((begin, end)) = text.find("//").zip(text.rfind('@'))
        && let Some(colon) = text.get(begin + 2..end).and_then(|user| user.find(':'))
    {
        hidden.push(begin + 2 + colon + 1..end);
    }
    let is_between = |c: char| matches!(c, '?' | '&' | '=' | '/');
    for (equals, _) in text.match_indices('=') {
        let name = &text[..equals];
        let name = &name[name.rfind(is_between).map_or(0, |before| before + 1)..];
        if name.to_ascii_lowercase().contains(SECRET) {
            let end = text[equals..].find('&').filter(|_| text[..equals].contains('?'));
            hidden.push(equals + 1..end.map_or(text.len(), |end| equals + end));
        }
    }
    hidden.sort_by_key(|range| range.start);
    hidden
}

/// A part of the name of every option or property that holds a password: `password`, YCSB's `db.passwd`, …
pub(crate) const SECRET: &str = "passw";

#[cfg(test)]
mod tests;
