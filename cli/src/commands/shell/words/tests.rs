use super::{quote, split};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

fn check(line: &str, expected: &[&[u8]]) {
    let found = split(line);
    let words: Vec<&[u8]> = found.words.iter().map(|word| &word.bytes[..]).collect();
    assert_eq!((words, found.is_open), (expected.to_vec(), false), "{line}");
}

#[test]
fn quotes_are_those_of_a_shell() {
    check("", &[]);
    check("  get  t\tk ", &[b"get", b"t", b"k"]);
    check(r#"a'b c'd "e \" \\ \n" '' f\ g"#, &[b"ab cd", b"e \" \\ \\n", b"", b"f g"]);
    check(r"$'Bonn\t2024' $'\'\\\x00\xfF\xg\q'", &[b"Bonn\t2024", b"'\\\x00\xFF\\xg\\q"]);
    check("put t é 'ü'", &["put".as_bytes(), b"t", "é".as_bytes(), "ü".as_bytes()]);
    check("$x '$'", &[b"$x", b"$"]);
}

#[test]
fn what_is_not_closed_is_open() {
    for line in ["a 'b", "a \"b\\\"", "a $'b\\'", "a\\", "'"] {
        assert!(split(line).is_open, "{line}");
    }
}

#[test]
fn an_unquoted_operator_ends_the_words() {
    for (line, words, rest) in
        [("scan t | head", 2, Some(7)), ("scan t>f", 2, Some(6)), ("get t '|<>'", 3, None), ("load t < f", 2, Some(7))]
    {
        let found = split(line);
        assert_eq!((found.words.len(), found.rest), (words, rest), "{line}");
    }
}

#[test]
fn a_quoted_word_splits_into_itself() {
    for seed in 0..2_000 {
        let mut random = SmallRng::seed_from_u64(seed);
        let alphabet = b"ab \t\n\r\\'\"$|<>x0\x00\xC3\xA9\xFF\x7F";
        let word: Vec<u8> =
            (0..random.random_range(0..8)).map(|_| alphabet[random.random_range(0..alphabet.len())]).collect();
        let found = split(&quote(&word));
        assert_eq!(found.words.len(), 1, "seed {seed}: {}", quote(&word));
        assert_eq!((&found.words[0].bytes, found.is_open, found.rest), (&word, false, None), "seed {seed}");
    }
}
