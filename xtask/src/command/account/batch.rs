//! Many cases: JSON lines in, JSON lines out, in order.

use std::io::{BufRead, Read as _, Write};
use std::path::Path;

use anyhow::{Context, bail};
use dp_accounting::case::{Case, Outcome};
use rayon::prelude::*;

/// Lines are worked on in parallel and written in order, so that a pipe can be watched.
const CHUNK: usize = 64;

/// Longest line that is kept; a longer one is read to its end and refused.
const MAX_LINE: u64 = (1 << 20) + 1;

/// Reads `path`, or standard input for `-`, and writes one line per case to standard output.
pub(super) fn run(path: &Path, defaults: &Case) -> anyhow::Result<()> {
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let (n_lines, n_failed) = if path == Path::new("-") {
        answer(&mut std::io::stdin().lock(), &mut output, defaults)?
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("opening {}", path.display()))?;
        answer(&mut std::io::BufReader::new(file), &mut output, defaults)?
    };
    if n_failed > 0 {
        bail!("{n_failed} of {n_lines} lines were not answered: see their notes");
    }
    Ok(())
}

/// Answers every line that is not blank; returns how many there were, and how many had no answer.
fn answer(input: &mut impl BufRead, output: &mut impl Write, defaults: &Case) -> anyhow::Result<(usize, usize)> {
    let (mut n_lines, mut n_failed) = (0, 0);
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        let mut error = None;
        while chunk.len() < CHUNK {
            match line(input) {
                Ok(Some(line)) if line.trim_ascii().is_empty() => {}
                Ok(Some(line)) => chunk.push(line),
                Ok(None) => break,
                Err(cause) => {
                    error = Some(cause);
                    break;
                }
            }
        }
        let outcomes: Vec<Outcome> = chunk.par_iter().map(|line| Outcome::of_line(line, defaults)).collect();
        for outcome in &outcomes {
            n_lines += 1;
            n_failed += usize::from(!outcome.is_answered);
            let mut text = serde_json::to_vec(outcome)?;
            text.push(b'\n');
            output.write_all(&text).context("writing to standard output")?;
        }
        output.flush().context("writing to standard output")?;
        // What was read before an error is answered.
        if let Some(error) = error {
            return Err(error).context("reading the cases");
        }
        if outcomes.len() < CHUNK {
            return Ok((n_lines, n_failed));
        }
    }
}

/// The next line without its end; of a line that is too long, its beginning.
fn line(input: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(line));
    }
    // Skip the rest of a line that is too long, in pieces.
    while line.len() as u64 >= MAX_LINE {
        let mut rest = Vec::new();
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut rest)? == 0 || rest.last() == Some(&b'\n') {
            break;
        }
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(input: &[u8], defaults: &Case) -> (Vec<serde_json::Value>, (usize, usize)) {
        let mut output = Vec::new();
        let counts = answer(&mut &input[..], &mut output, defaults).unwrap();
        let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        (lines.map(|line| serde_json::from_slice(line).unwrap()).collect(), counts)
    }

    #[test]
    fn answers_come_in_order_and_failures_are_counted() {
        let mut input = Vec::new();
        for id in 0..150 {
            let steps = if id % 3 == 0 { 4_000 } else { 1 };
            input.extend(
                format!("{{\"id\":{id},\"sampling_rate\":0.01,\"noise_multiplier\":1,\"steps\":{steps}}}\n\n").bytes(),
            );
        }
        input.extend(b"{\"id\":150,\"sampling_rate\":0.01,\xff}\n{\"id\":151,\"stepz\":1}");
        let defaults = Case { delta: Some(1e-5), ..Case::default() };
        let (lines, counts) = answered(&input, &defaults);
        assert_eq!(counts, (152, 2));
        for (i, line) in lines.iter().enumerate() {
            // A line that is not UTF-8 has no id.
            assert_eq!(line["id"].as_u64(), (i != 150).then_some(i as u64));
        }
        assert!(lines[0]["epsilon_pld_upper"].is_f64() && lines[150]["note"] == "not UTF-8");
    }

    #[test]
    fn what_was_given_for_all_lines_counts() {
        let line = br#"{"sampling_rate":0.01,"noise_multiplier":1,"steps":1000,"delta":1e-5}"#;
        let (plain, _) = answered(line, &Case::default());
        let counting = Case { count_noise_multipliers: Some(vec![2.0]), ..Case::default() };
        let (with_counts, _) = answered(line, &counting);
        let epsilon = |lines: &[serde_json::Value]| lines[0]["epsilon_rdp"].as_f64().unwrap();
        assert!(epsilon(&with_counts) > epsilon(&plain));
        let (conflict, counts) = answered(line, &Case { delta: Some(1e-6), ..Case::default() });
        assert_eq!(counts, (1, 1));
        assert!(conflict[0]["note"].as_str().unwrap().contains("cannot be given together"));
    }

    #[test]
    fn a_line_without_end_is_refused_and_the_next_answered() {
        let mut input = vec![b'x'; 3 << 20];
        input.extend(b"\n{\"event\":\"non-private\",\"delta\":1e-5}\n");
        let (lines, counts) = answered(&input, &Case::default());
        assert_eq!(counts, (2, 1));
        assert!(lines[0]["note"].as_str().unwrap().contains("bytes"));
        assert!(lines[1]["epsilon_pld_upper"].is_null() && lines[1]["note"].is_string());
    }
}
