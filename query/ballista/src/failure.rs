//! Recovers Larch's words about an error in another process. Ballista passes errors on as text and adds its own
//! before and after, so Larch puts its words between two marks.

use datafusion::error::DataFusionError;

const BEFORE: &str = "[larch: ";
const AFTER: &str = " :larch]";

/// Wraps an error of another crate, so that DataFusion can pass it on.
pub fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The error with its words marked, to be sent to the process that asks.
pub fn to_be_sent(error: DataFusionError) -> DataFusionError {
    let words = match error.find_root() {
        DataFusionError::External(error) => error.to_string(),
        DataFusionError::Execution(words) | DataFusionError::Plan(words) => words.clone(),
        // DataFusion's own text says enough, such as how much memory was there.
        _ => return error,
    };
    DataFusionError::Execution(format!("{BEFORE}{words}{AFTER}"))
}

/// Larch's words in an error that another process has sent, or `None` if it has none.
pub fn sent(error: &DataFusionError) -> Option<String> {
    let text = error.to_string();
    let start = text.find(BEFORE)? + BEFORE.len();
    let words = &text[start..start + text[start..].find(AFTER)?];
    // The words are unchanged, or in a string in Rust's debug format.
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
