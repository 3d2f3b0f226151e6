//! Many cases: JSON lines in, JSON lines out, in order.

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::Context;
use dp_accounting::{
    Accountant, Certainty, Conversion, Delta, DpEvent, GdpAccountant, NoiseMultiplier, Orders, PldAccountant,
    RdpAccountant, SamplingRate,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{RELATION, composed};

#[derive(Debug, Deserialize)]
struct Case {
    sampling_rate: f64,
    noise_multiplier: f64,
    steps: u64,
    delta: f64,
}

/// One line of output. A missing value has a reason in the note.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
struct Outcome {
    id: serde_json::Value,
    epsilon_rdp: Option<f64>,
    epsilon_rdp_classic: Option<f64>,
    epsilon_pld_lower: Option<f64>,
    epsilon_pld_upper: Option<f64>,
    epsilon_gdp: Option<f64>,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Lines are worked on in parallel and written in order, so that a pipe can be watched.
const CHUNK: usize = 64;

/// Reads `path`, or standard input for `-`, and writes one line per case to standard output.
pub(super) fn run(path: &Path) -> anyhow::Result<()> {
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(std::io::BufReader::new(std::io::stdin()))
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("opening {}", path.display()))?;
        Box::new(std::io::BufReader::new(file))
    };
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut lines = input.lines();
    loop {
        let chunk: Vec<String> = lines
            .by_ref()
            .take(CHUNK)
            .collect::<Result<_, _>>()
            .with_context(|| format!("reading {}", path.display()))?;
        if chunk.is_empty() {
            return output.flush().context("writing to standard output");
        }
        let outcomes: Vec<Outcome> =
            chunk.par_iter().filter(|line| !line.trim().is_empty()).map(|line| outcome(line)).collect();
        for outcome in outcomes {
            serde_json::to_writer(&mut output, &outcome)?;
            output.write_all(b"\n")?;
        }
        output.flush()?;
    }
}

/// Never fails: what is wrong with a line is its note.
fn outcome(line: &str) -> Outcome {
    let start = std::time::Instant::now();
    let value: serde_json::Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => return Outcome { note: Some(format!("not JSON: {error}")), ..Outcome::default() },
    };
    let id = value.get("id").cloned().unwrap_or_default();
    let mut outcome = serde_json::from_value::<Case>(value)
        .map_err(anyhow::Error::from)
        .and_then(|case| account(&case))
        .unwrap_or_else(|error| Outcome { note: Some(error.to_string()), ..Outcome::default() });
    outcome.id = id;
    outcome.seconds = start.elapsed().as_secs_f64();
    outcome
}

fn account(case: &Case) -> anyhow::Result<Outcome> {
    let (rate, sigma) = (SamplingRate::new(case.sampling_rate)?, NoiseMultiplier::new(case.noise_multiplier)?);
    let delta = Delta::new(case.delta)?;
    let event = DpEvent::gaussian(sigma).poisson_sampled(rate);
    let rdp = composed(RdpAccountant::new(RELATION), &event, case.steps)?;
    let classic = rdp.clone().with_orders(Orders::moments_accountant()).with_conversion(Conversion::Classic);
    let pld = composed(PldAccountant::new(RELATION), &event, case.steps)?.epsilon(delta)?;
    let gdp = composed(GdpAccountant::new(RELATION), &event, case.steps)?.epsilon(delta)?;
    let mut notes = Vec::new();
    let mut finite = |name: &str, epsilon: f64| {
        if epsilon.is_finite() {
            Some(epsilon)
        } else {
            notes.push(format!("{name}: epsilon is infinite"));
            None
        }
    };
    let mut outcome = Outcome {
        epsilon_rdp: finite("RDP", rdp.epsilon(delta)?.epsilon.get()),
        epsilon_rdp_classic: finite("RDP, classic conversion", classic.epsilon(delta)?.epsilon.get()),
        epsilon_pld_lower: pld.lower.map(dp_accounting::Epsilon::get).filter(|lower| lower.is_finite()),
        epsilon_pld_upper: finite("PLD", pld.epsilon.get()),
        epsilon_gdp: finite("GDP", gdp.epsilon.get()),
        ..Outcome::default()
    };
    if let Certainty::FallBack { reason } = pld.certainty {
        notes.push(format!("PLD: {reason}"));
    }
    outcome.note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_an_answer_or_a_note() {
        let good =
            outcome(r#"{"id":"a","sampling_rate":0.01,"noise_multiplier":1,"steps":1000,"delta":1e-5,"other":1}"#);
        assert_eq!(good.id, "a");
        assert_eq!(good.note, None);
        let (rdp, lower, upper) =
            (good.epsilon_rdp.unwrap(), good.epsilon_pld_lower.unwrap(), good.epsilon_pld_upper.unwrap());
        assert!(lower < upper && upper < rdp && rdp < good.epsilon_rdp_classic.unwrap());
        let bad = outcome(r#"{"id":7,"sampling_rate":2,"noise_multiplier":1,"steps":1000,"delta":1e-5}"#);
        assert_eq!((bad.id, bad.epsilon_rdp), (7.into(), None));
        insta::assert_snapshot!(bad.note.unwrap(), @"sampling rate is 2, but must be in (0, 1]");
        assert!(outcome("{").note.unwrap().starts_with("not JSON"));
        insta::assert_snapshot!(outcome(r#"{"id":1}"#).note.unwrap(), @"missing field `sampling_rate`");
    }
}
