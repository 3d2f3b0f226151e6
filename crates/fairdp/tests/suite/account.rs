//! Questions to the accountants on the command line.

use std::path::Path;

use super::program::{done, refused};

#[test]
fn what_is_missing_or_out_of_range_is_named_as_an_option() {
    let words =
        |question: &'static str| -> Vec<&str> { ["account"].into_iter().chain(question.split_whitespace()).collect() };
    for (question, expected) in [
        ("", "give --sampling-rate, or --records with --batch-size"),
        ("--sampling-rate 0.1 --steps 3", "give --noise-multiplier, or --target-epsilon to find it"),
        ("--sampling-rate 0.1 --steps 3 --noise-multiplier -1", "noise multiplier is -1, but must be"),
        ("--sampling-rate 0.1 --steps 3 --target-epsilon -1", "epsilon is -1, but must be"),
    ] {
        let (code, message) = refused(Path::new("."), &words(question));
        assert!(code == 2 && message.contains(expected), "{question}: {code} {message}");
    }
    let answer = done(Path::new("."), &words("--sampling-rate 0.01 --steps 1000 --noise-multiplier 1"));
    assert!(answer.contains("epsilon "), "{answer}");
}
