//! Errors of a store, with the object, the bucket and the cause in their text. It does not know how they are handled. No
//! credentials are in the text: what follows a `?` in an address is left out, because there may be a signature in it.

use object_store::Error;
use std::error::Error as _;
use std::io::{self, ErrorKind};

/// The kind that callers handle.
pub fn kind_of(error: &Error) -> ErrorKind {
    match error {
        Error::NotFound { .. } => ErrorKind::NotFound,
        Error::AlreadyExists { .. } | Error::Precondition { .. } => ErrorKind::AlreadyExists,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorKind::PermissionDenied,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => ErrorKind::Unsupported,
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => ErrorKind::InvalidInput,
        _ => ErrorKind::Other,
    }
}

/// Whether the store may have refused a range of an object that is there. Other errors may say so, too.
pub fn may_be_of_range(error: &Error) -> bool {
    let text = causes(error).to_lowercase();
    kind_of(error) == ErrorKind::Other && (text.contains("range") || text.contains("416"))
}

/// `error` as "cannot `action` `key` in `bucket`: cause".
pub fn describe(action: &str, bucket: &str, key: &str, error: &Error) -> io::Error {
    let advice = match kind_of(error) {
        ErrorKind::PermissionDenied => "; check the credentials and what they permit",
        _ => "",
    };
    let text = format!("cannot {action} {key} in {bucket}: {}{advice}", without_queries(&causes(error)));
    io::Error::new(kind_of(error), text)
}

/// An error and what it came from, each cause once.
fn causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// The text without the queries of addresses in it.
pub fn without_queries(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('?') {
        let (before, query) = rest.split_at(at + 1);
        out.push_str(before);
        let end = query.find(|c: char| c.is_whitespace() || "\"'<>)".contains(c)).unwrap_or(query.len());
        if end > 0 {
            out.push_str("...");
        }
        rest = &query[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_bucket_key_and_cause_and_shows_no_signature() {
        let source = "403 for https://b.example/k?sig=SECRET&se=1 (see x?y)".into();
        let error = Error::PermissionDenied { path: "db/sst/1".to_owned(), source };
        let error = describe("read", "s3://b", "db/sst/1", &error);
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(
            ["db/sst/1", "s3://b", "403", "check the credentials"].iter().all(|part| text.contains(part)),
            "{text}"
        );
        assert!(!text.contains("SECRET") && !text.contains("se=1"), "{text}");
    }
}
