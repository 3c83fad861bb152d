//! The versions of crates, read from the lock file of a workspace.

/// The version of crate `name` in the text of a `Cargo.lock`. If the crate occurs in several versions, the result is
/// the first one in the file.
pub fn of_crate<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let name_line = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name_line).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::of_crate;

    #[test]
    fn a_crate_is_found_by_its_whole_name() {
        let lock = "[[package]]\nname = \"redb-extra\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"redb\"\nversion = \"4.4.0\"\n";
        assert_eq!(of_crate(lock, "redb"), Some("4.4.0"));
        assert_eq!(of_crate(lock, "red"), None);
    }
}
