//! How long a study would take: a few steps of each experiment are timed, the rest is arithmetic.

use std::fmt;
use std::time::{Duration, Instant};

use dp_train::{Execution, Plan, Randomness, Records, Trainer, Unobserved};

/// Steps are timed for this long, after a first one that is not.
const TIMED: Duration = Duration::from_secs(2);

/// What an experiment comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Workload {
    /// Experiment by its identifier.
    pub(crate) experiment: String,
    /// Runs to train; a search is one.
    pub(crate) runs: u64,
    /// Records that they draw, about.
    pub(crate) records: f64,
    /// Records that steps of a private method took in a second on one thread.
    pub(crate) records_per_second: f64,
}

impl Workload {
    /// Time on so many threads, in seconds, one run on each.
    pub(crate) fn seconds(&self, threads: usize) -> f64 {
        self.records / self.records_per_second / threads.min(self.runs.max(1) as usize) as f64
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millions = |n: f64| format!("{:.*}", if n < 1e7 { 2 } else { 0 }, n / 1e6);
        write!(
            f,
            "{}: {} runs, {} million records, {:.0} of them a second and thread",
            self.experiment,
            self.runs,
            millions(self.records),
            self.records_per_second
        )
    }
}

/// The sum as a sentence.
pub(crate) fn total(workloads: &[Workload], threads: usize, has_follow_up: bool) -> String {
    let seconds: f64 = workloads.iter().map(|workload| workload.seconds(threads)).sum();
    let follow_up = if has_follow_up { " What a search goes on with comes on top." } else { "" };
    format!(
        "About {} on {threads} threads: an estimate from a few steps, evaluations left out.{follow_up}",
        duration(seconds)
    )
}

/// In the unit that suits it.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} seconds"),
        s if s < 7_200.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} hours", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// Records a second that steps of this plan take.
///
/// # Errors
/// If a step fails.
pub(crate) fn throughput(plan: &Plan, records: &Records, execution: &Execution) -> anyhow::Result<f64> {
    // What is trained here is thrown away: nothing of it is a release.
    let streams = Randomness::from_seed(0).streams(0, 0)?;
    let mut trainer = Trainer::new(plan, records, streams, execution.clone())?;
    trainer.step(&mut Unobserved)?;
    let (started, mut steps) = (Instant::now(), 0_u32);
    while started.elapsed() < TIMED {
        trainer.step(&mut Unobserved)?;
        steps += 1;
    }
    Ok(f64::from(steps) * plan.expected_batch_size() / started.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_records_over_throughput_and_threads() {
        let workload = |experiment: &str, runs, records| Workload {
            experiment: experiment.to_owned(),
            runs,
            records,
            records_per_second: 1_000.0,
        };
        let (one, two) = (workload("one", 25, 7.2e6), workload("two", 1, 3.6e6));
        // 7,200 s on two threads; a single run has one of them.
        assert_eq!((one.seconds(2), two.seconds(2)), (3_600.0, 3_600.0));
        assert_eq!(one.to_string(), "one: 25 runs, 7.20 million records, 1000 of them a second and thread");
        assert_eq!(
            total(&[one, two], 2, true),
            "About 2 hours on 2 threads: an estimate from a few steps, evaluations left out. What a search goes on with \
             comes on top."
        );
        assert_eq!([30.0, 600.0, 1e6].map(duration), ["30 seconds", "10 minutes", "12 days"]);
    }
}
