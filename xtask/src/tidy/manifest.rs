//! Reads as much of `Cargo.toml` as the rules need: sections and their one-line entries. This is not a full TOML
//! parser.

/// A line `key = value` of a manifest.
#[derive(Clone, Copy)]
pub struct Entry<'t> {
    /// Counted from 1.
    pub line: usize,
    /// The name of the section, as it stands in brackets.
    pub section: &'t str,
    /// The text before the first dot or `=`.
    pub key: &'t str,
    /// The text after the `=`, with quotes, without a comment.
    pub value: &'t str,
}

/// All entries of a manifest. A section `[dependencies.name]` gives an entry `name` of `dependencies`, and after it
/// the section's own entries.
pub fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut section = "";
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let line = line.split_once(" #").map_or(line, |(before, _)| before).trim();
        if line.starts_with('[') && line.ends_with(']') {
            section = line.trim_matches(['[', ']']);
            if let Some((outer, name)) = section.rsplit_once('.')
                && outer.ends_with("dependencies")
            {
                entries.push(Entry { line: line_number, section: outer, key: name, value: "" });
            }
        } else if let Some((name, value)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let key = name.split('.').next().expect("split gives one part at least").trim().trim_matches('"');
            entries.push(Entry { line: line_number, section, key, value: value.trim() });
        }
    }
    entries
}

impl<'t> Entry<'t> {
    /// Whether this is a dependency of any kind: a normal one, one of tests, of the build script, or of one platform.
    pub fn is_dependency(&self) -> bool {
        let kind = self.section.rsplit('.').next().expect("split gives one part at least");
        !self.section.starts_with("workspace")
            && matches!(kind, "dependencies" | "dev-dependencies" | "build-dependencies")
    }

    /// The value of `package = "…"` in an inline table.
    pub fn renamed(&self) -> Option<&'t str> {
        let (_, after) = self.value.split_once("package")?;
        after.split('"').nth(1)
    }
}
