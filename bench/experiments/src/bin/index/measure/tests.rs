use super::*;

const EFFORT: Effort = Effort { repeats: 3, sample: Duration::ZERO };

fn numbers(seed: u64, count: usize) -> Vec<u64> {
    (1..=count as u64).map(|i| seed.wrapping_add(i) | 1).collect()
}

#[test]
fn every_side_is_timed_on_the_same_inputs() {
    let mut seen = [Vec::new(), Vec::new()];
    let [a, b] = &mut seen;
    let mut first = |probes: &[u64]| {
        a.push(probes.to_vec());
        Ok(probes.iter().fold(0u64, |sum, probe| sum.wrapping_add(*probe)))
    };
    let mut second = |probes: &[u64]| {
        b.push(probes.to_vec());
        Ok(probes.iter().fold(0u64, |sum, probe| sum.wrapping_add(*probe)))
    };
    let timed = in_turns(EFFORT, &numbers, &mut [&mut first, &mut second]).expect("both do the same");
    assert_eq!(timed.len(), 2);
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0].len(), 1 + 3, "once to warm up");
    assert_ne!(seen[0][1], seen[0][2], "each turn has inputs of its own");
}

#[test]
fn a_side_that_reads_nothing_or_something_else_is_an_error() {
    let mut right = |probes: &[u64]| Ok(probes.iter().fold(0u64, |sum, probe| sum.wrapping_add(*probe)));
    let mut idle = |_: &[u64]| Ok(0);
    let mut wrong = |probes: &[u64]| Ok(probes.len() as u64);
    assert!(in_turns(EFFORT, &numbers, &mut [&mut idle]).is_err());
    assert!(in_turns(EFFORT, &numbers, &mut [&mut right, &mut wrong]).is_err());
    assert!(in_turns(EFFORT, &numbers, &mut [&mut right]).is_ok());
}
