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
        ("--sampling-rate 0.1 --steps 3 --noise-multiplier -1", "noise_multiplier = -1: expected 0, infinity"),
        ("--sampling-rate 0.1 --steps 3 --target-epsilon -1", "target_epsilon = -1: expected a finite number above 0"),
        ("--records 9 --batch-size 10 --steps 3 --noise-multiplier 1", "batch_size = 10: expected at most the number"),
        ("--sampling-rate 0.1 --steps 3 --delta 1e-5 --epsilon 1", "--delta and --epsilon cannot be given together"),
        ("--sampling-rate 0.1 --target-epsilon 1", "give with --target-epsilon, exactly two of --noise-multiplier"),
        ("--sampling-rate 1 --noise-multiplier 1e-3 --target-epsilon 1", "no number of steps in [1, 2^40]"),
    ] {
        let (code, message) = refused(Path::new("."), &words(question));
        assert!(code == 2 && message.contains(expected), "{question}: {code} {message}");
    }
    // δ is 0.00261242057…: a guarantee does not shrink in print.
    let batches = "--sampling-rate 0.01 --steps 1000 --noise-multiplier 1";
    for (question, expected) in [
        (batches.to_owned(), "neighbours"),
        (format!("{batches} --epsilon 1"), "δ ≤ 2.613e-3 (certified)"),
        (format!("{batches} --json"), "\"mark\":\"certified\""),
        ("--records 1000000 --batch-size 100 --steps 1 --noise-multiplier 1".into(), "delta 1e-7"),
        ("--sampling-rate 1e-9 --noise-multiplier 1 --target-epsilon 1".into(), "steps 1099511627776 is the most that"),
        ("--sampling-rate 1e-9 --steps 1000 --target-epsilon 1".into(), "0.010000, the least that is tried"),
        ("--sampling-rate 1 --steps 1 --noise-multiplier 0 --json".into(), "\"mark\":\"nominal, not a guarantee\""),
    ] {
        let words: Vec<&str> = ["account"].into_iter().chain(question.split_whitespace()).collect();
        let answer = done(Path::new("."), &words);
        assert!(answer.contains(expected), "{question}: {answer}");
    }
}
