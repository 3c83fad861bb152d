use super::*;

#[test]
fn the_first_failing_step_stops_the_rest() {
    let steps: Vec<&Step> = STEPS.iter().collect();
    let mut started = Vec::new();
    let failed = first_failure(&steps, |step| {
        started.push(step.name);
        step.name != "clippy"
    });
    assert_eq!(failed.map(|step| step.name), Some("clippy"));
    assert_eq!(started, ["format", "tidy", "clippy"]);
}

#[test]
fn nothing_fails_when_every_step_passes() {
    let steps: Vec<&Step> = STEPS.iter().chain([&FUZZ]).collect();
    assert!(first_failure(&steps, |_| true).is_none());
}

#[test]
fn a_step_reads_as_the_command_one_types() {
    assert_eq!(STEPS[0].to_string(), "cargo fmt --all --check");
    let fuzz = "RUSTFLAGS=\"--cfg fuzzing -D warnings\" cargo check --package larch-fuzz --no-default-features";
    assert_eq!(FUZZ.to_string(), fuzz);
}
