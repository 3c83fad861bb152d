//! Errors of a store, whose texts name the object, the bucket and the cause. This module does not know how the
//! errors are handled. The texts have no credentials: everything after a `?` in an address is left out, because it
//! may have a signature.

use object_store::Error;
use os::store::UNAVAILABLE;
use std::error::Error as _;
use std::io::{self, ErrorKind};

/// A request that failed, and what is known about its answer.
#[derive(Debug)]
pub struct Refused {
    pub error: object_store::Error,
    /// The status of the last answer, if one came.
    pub answer: Option<u16>,
}

/// The kind that callers handle. `answer` is the status of the last answer, if known. It is needed because
/// `object_store` has a single kind of error for most statuses.
pub fn kind_of(error: &Error, answer: Option<u16>) -> ErrorKind {
    match error {
        // Only the text of the error tells a missing bucket from a missing object; the status is the same.
        Error::NotFound { .. } | Error::Generic { .. }
            if answer.is_none_or(|status| status == 404) && has_no_bucket(error) =>
        {
            ErrorKind::InvalidInput
        }
        Error::NotFound { .. } => ErrorKind::NotFound,
        Error::AlreadyExists { .. } | Error::Precondition { .. } => ErrorKind::AlreadyExists,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorKind::PermissionDenied,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => ErrorKind::Unsupported,
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => ErrorKind::InvalidInput,
        _ => match answer {
            Some(401 | 403) => ErrorKind::PermissionDenied,
            Some(404) => ErrorKind::NotFound,
            // The bucket is in another region.
            Some(301 | 307 | 308) => ErrorKind::InvalidInput,
            _ => UNAVAILABLE,
        },
    }
}

/// Whether an answer says that the bucket, or the container, does not exist.
fn has_no_bucket(error: &Error) -> bool {
    let text = causes(error);
    ["NoSuchBucket", "ContainerNotFound", "bucket does not exist"].iter().any(|part| text.contains(part))
}

/// Whether the store may have refused a range of an existing object. Other errors may look the same.
pub fn may_be_of_range(error: &Error) -> bool {
    let text = causes(error).to_lowercase();
    kind_of(error, None) == UNAVAILABLE && (text.contains("range") || text.contains("416"))
}

/// The error of a failed request, as "cannot `action` `key` in `bucket`: cause".
pub fn describe(action: &str, bucket: &str, key: &str, refused: &Refused) -> io::Error {
    let Refused { error, answer } = refused;
    let kind = kind_of(error, *answer);
    let advice = match kind {
        ErrorKind::PermissionDenied => "; check the credentials and what they permit",
        ErrorKind::InvalidInput => "; check the name of the bucket and its region, or make the bucket",
        _ => "",
    };
    let text = format!("cannot {action} {key} in {bucket}: {}{advice}", without_queries(&causes(error)));
    io::Error::new(kind, text)
}

/// The text of an error and of the errors that caused it, each once.
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

/// `text` without the queries of its addresses.
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
        let error = describe("read", "s3://b", "db/sst/1", &Refused { error, answer: None });
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(
            ["db/sst/1", "s3://b", "403", "check the credentials"].iter().all(|part| text.contains(part)),
            "{text}"
        );
        assert!(!text.contains("SECRET") && !text.contains("se=1"), "{text}");
    }
    #[test]
    fn an_answer_that_no_attempt_changes_has_a_kind_that_says_so() {
        let generic = |text: &str| Error::Generic { store: "S3", source: text.to_owned().into() };
        for (error, answer, kind) in [
            (generic("403 Forbidden: InvalidAccessKeyId"), Some(403), ErrorKind::PermissionDenied),
            (generic("404 Not Found: <Code>NoSuchBucket</Code>"), Some(404), ErrorKind::InvalidInput),
            (generic("redirect without LOCATION"), Some(301), ErrorKind::InvalidInput),
            (generic("503 SlowDown"), Some(503), UNAVAILABLE),
            (generic("connection refused"), None, UNAVAILABLE),
            (Error::NotFound { path: "k".to_owned(), source: "NoSuchKey".into() }, Some(404), ErrorKind::NotFound),
            (
                Error::NotFound { path: "k".to_owned(), source: "NoSuchBucket".into() },
                Some(404),
                ErrorKind::InvalidInput,
            ),
        ] {
            assert_eq!(kind_of(&error, answer), kind, "{error}");
        }
    }
}
