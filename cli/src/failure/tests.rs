use super::told;
use larch::{Error, Version};

#[test]
fn advice_is_what_a_user_of_commands_can_do() {
    let (directory, why) = (std::path::PathBuf::from("db"), || "no room".to_owned());
    for (error, advice) in [
        (Error::NoThreads(why()), "with --read-only"),
        (
            Error::Full { what: "the write buffer is full", cause: Box::new(Error::NoThreads(why())) },
            "run the command again",
        ),
        (Error::WritesStopped(why()), "run the command again"),
        (
            Error::Outdated { directory: directory.clone(), read: Version(1), newest: Version(2) },
            "run the command again, without --read-only",
        ),
        (
            Error::FellBehind { directory: directory.clone(), newest: Version(1), seen: Version(2) },
            "run the command again",
        ),
        (Error::Locked(directory), "commands that only read do not wait"),
    ] {
        let text = told(&error);
        assert!(text.contains(advice), "{text}");
        let is_for_programs =
            ["close the database", "open it", "open the database"].iter().any(|part| text.contains(part));
        assert!(!is_for_programs, "{text}");
    }
}
