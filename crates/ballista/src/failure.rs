//! Finds the words about an error in another process. Ballista passes an error on as text, with its own text before
//! and after it. Therefore Larch puts its words between two marks, by which they can be found again.

use datafusion::error::DataFusionError;

const BEFORE: &str = "[larch: ";
const AFTER: &str = " :larch]";

/// Wraps an error of another crate, so that DataFusion can pass it on.
pub fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The error in the form in which it is sent to the process that asks.
pub fn to_be_sent(error: DataFusionError) -> DataFusionError {
    let words = match error.find_root() {
        DataFusionError::External(error) => error.to_string(),
        DataFusionError::Execution(words) | DataFusionError::Plan(words) => words.clone(),
        // DataFusion's own text says what failed and how much memory there was.
        _ => return error,
    };
    DataFusionError::Execution(format!("{BEFORE}{words}{AFTER}"))
}

/// Finds the words of Larch in an error that another process has sent. Returns `None` if the error does not
/// contain such words.
pub fn sent(error: &DataFusionError) -> Option<String> {
    let text = error.to_string();
    let start = text.find(BEFORE)? + BEFORE.len();
    let words = &text[start..start + text[start..].find(AFTER)?];
    // The words are either the content of a string in Rust's debug format, or they are unchanged.
    let is_quoted = text[..start - BEFORE.len()].ends_with('"');
    Some(if is_quoted {
        words.replace("\\\"", "\"").replace("\\'", "'").replace("\\\\", "\\")
    } else {
        words.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_again_in_what_others_say_around_them() {
        let words = r#"row "a\\b": it is 'not' JSON"#;
        let error = to_be_sent(DataFusionError::Execution(words.to_owned()));
        assert_eq!(sent(&error).as_deref(), Some(words));
        let around = DataFusionError::Execution(format!("Job 7 failed: DataFusionError(Shared({error:?}))"));
        assert_eq!(sent(&around).as_deref(), Some(words));
        assert_eq!(sent(&DataFusionError::Execution("no memory".to_owned())), None);
    }
}
