//! Finds comments and pages that are hard to read: lines that are too wide, and sentences with words that often
//! make a sentence hard to read. The rule only warns and never fails, because its patterns also find good
//! sentences. The rule counts separately for each crate, and does not analyse grammar.
//!
//! Blocks of code are not examined. Rows of tables may be of any width.

use super::Finding;
use super::source::Source;
use super::tree::Tree;
use std::collections::BTreeMap;

/// The greatest width of a line in a comment or on a page, in characters.
const WIDEST: usize = 120;

/// A line of prose in a comment or on a page.
struct Prose<'t> {
    /// The number of the line, counted from 1.
    line: usize,
    /// The line as it stands in the file.
    whole: &'t str,
    /// The line without the marks of a comment.
    words: &'t str,
}

/// A pattern that makes a line hard to read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pattern {
    Wide,
    Of,
    SoMany,
    There,
}

impl Pattern {
    const ALL: [Self; 4] = [Self::Wide, Self::Of, Self::SoMany, Self::There];

    /// How often the pattern occurs in a line. `before` is the previous line. `spoken` has the words of the end of
    /// that line and of this line, as the function [`spoken`] returns them.
    fn count(self, prose: &Prose<'_>, before: &str, spoken: &str) -> usize {
        match self {
            Self::Wide => usize::from(is_wide(prose)),
            Self::Of => {
                let text = prose.words.trim_start_matches(['*', '-', ' ']);
                let begins = text.starts_with("Of ") && (ends_sentence(before) || text != prose.words);
                usize::from(begins) + prose.words.matches(". Of ").count()
            }
            Self::SoMany => spoken.matches(" so many ").count(),
            Self::There => spoken.matches(" there is ").count() + spoken.matches(" there are ").count(),
        }
    }

    fn said(self) -> &'static str {
        match self {
            Self::Wide => "lines wider than 120 columns",
            Self::Of => "sentences that begin with `Of`",
            Self::SoMany => "sentences with `so many`",
            Self::There => "sentences with `there is` or `there are`",
        }
    }
}

/// For each crate and pattern, the number of lines with the pattern, and the place of the first such line.
pub fn hard_to_read(tree: &Tree) -> Vec<Finding> {
    let mut found: BTreeMap<(&str, Pattern), (usize, &str, usize)> = BTreeMap::new();
    for (path, text) in tree.texts("").filter(|(path, _)| path.ends_with(".rs") || path.ends_with(".md")) {
        let lines = if path.ends_with(".md") { of_page(text) } else { of_source(text) };
        let mut before = (0, "");
        for prose in lines {
            let last = if before.0 + 1 == prose.line { before.1 } else { "" };
            let spoken = spoken(last, prose.words);
            for pattern in Pattern::ALL {
                let count = pattern.count(&prose, last, &spoken);
                if count > 0 {
                    found.entry((crate_of(path), pattern)).or_insert((0, path, prose.line)).0 += count;
                }
            }
            before = (prose.line, prose.words);
        }
    }
    let finding = |((place, pattern), (count, path, line)): ((&str, Pattern), (usize, &str, usize))| {
        Finding::new(path, line, format!("{} in {place}: {count}, of which this is the first", pattern.said()))
    };
    found.into_iter().map(finding).collect()
}

/// Returns the words of `line` in lower case, with a space on each side of a word. The last word of the line
/// before is put in front of them, because a pattern may begin with that word.
fn spoken(before: &str, line: &str) -> String {
    let last = before.split_whitespace().next_back().unwrap_or_default();
    let letters = [" ", last, " ", line, " "].into_iter().flat_map(str::chars);
    letters.map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' }).collect()
}

/// The lines of a page that are not code.
fn of_page(text: &str) -> Vec<Prose<'_>> {
    let mut fenced = false;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    });
    lines.map(|(line, whole)| Prose { line, whole, words: whole.trim() }).collect()
}

/// The lines of comments that are not code.
fn of_source(text: &str) -> Vec<Prose<'_>> {
    let comments = Source::new(text).comments;
    let mut fenced = false;
    let mut found = Vec::new();
    for (line, (whole, comment)) in (1..).zip(text.lines().zip(comments.lines())) {
        if comment.trim().is_empty() {
            fenced = false;
            continue;
        }
        // Each byte of `comments` stands at the same offset as in the text of the file.
        let words = &whole[comment.len() - comment.trim_start().len()..];
        let words = words.trim_start_matches('/').trim_start_matches('!').trim();
        let is_fence = words.starts_with("```");
        fenced ^= is_fence;
        if !fenced && !is_fence {
            found.push(Prose { line, whole, words });
        }
    }
    found
}

/// Whether a line of text is too wide. Some lines cannot be broken: rows of tables, tags of HTML, and lines that a
/// tool reads. Such lines never count as too wide.
fn is_wide(prose: &Prose<'_>) -> bool {
    let is_text = prose.words.len() == prose.whole.trim().len() || prose.whole.trim_start().starts_with("//");
    let is_whole = prose.words.starts_with(['|', '<']) || prose.words.starts_with("Measured at commit ");
    is_text && !is_whole && prose.whole.chars().count() > WIDEST && prose.words.contains(' ')
}

/// Whether the line after `line` begins with a new sentence.
fn ends_sentence(line: &str) -> bool {
    line.is_empty() || line.ends_with(['.', ':', '?', '!', '|']) || line.starts_with('#')
}

/// The crate of a file. If the file is in no crate, this is its first folder, or `the root` if it is in no folder.
fn crate_of(path: &str) -> &str {
    let depth = match path.split('/').next() {
        Some("bench" | "cloud" | "engine" | "query") => 2,
        _ => 1,
    };
    match path.match_indices('/').nth(depth - 1) {
        Some((end, _)) => &path[..end],
        None => "the root",
    }
}
