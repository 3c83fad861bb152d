//! The `larch` binary with stores, as users run it.

use std::process::Command;

/// A command, and a part of what it must print: `Ok` if it must succeed, `Err` if it must fail.
pub type Expected<'a> = (&'a [&'a str], Result<&'a str, &'a str>);

/// The command `larch` with these arguments and environment variables.
pub fn larch(variables: &[(&str, String)], arguments: &[&str]) -> Command {
    let mut command = Command::new(kit::program::larch("cloud"));
    command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

/// Runs commands one after the other and checks what they print.
pub fn expect(variables: &[(&str, String)], commands: &[Expected<'_>]) {
    for (arguments, expected) in commands {
        let output = larch(variables, arguments).output().expect("it was built");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("it prints text");
        let (expects, part) = expected.map_or_else(|part| (false, part), |part| (true, part));
        assert!(output.status.success() == expects && text.contains(part), "{arguments:?}: {text}");
    }
}
