//! Progress: a bar in a terminal, a line a minute in a log.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dp_data::DownloadProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ranks::ranks;

/// How far the runs of a study are: a bar over all their steps, with throughput and time left, or
/// lines of a log.
pub(crate) struct TrainingProgress {
    /// Over the records of all steps.
    pub(crate) bar: ProgressBar,
    n_finished: std::sync::Arc<AtomicUsize>,
    log: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl TrainingProgress {
    /// Begins.
    pub(crate) fn begin(n_runs: usize, total_records: u64) -> Self {
        let bar = ProgressBar::new(total_records);
        bar.set_style(style("{elapsed_precise} [{bar:32}] {percent:>3} %  {per_sec} records  {eta} left  {msg}"));
        bar.enable_steady_tick(Duration::from_millis(200));
        let n_finished = std::sync::Arc::new(AtomicUsize::new(0));
        let is_first = ranks().rank() == 0;
        if !is_first {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let log = (is_first && !std::io::stderr().is_terminal()).then(|| {
            let (stop, stopped) = mpsc::channel();
            let (bar, n_finished, begun) = (bar.clone(), n_finished.clone(), Instant::now());
            let lines = move || {
                while stopped.recv_timeout(LOG_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
                    let line =
                        log_line(n_finished.load(Ordering::Relaxed), n_runs, &bar, begun.elapsed().as_secs_f64());
                    // A log that cannot be written costs its lines, nothing else.
                    drop(writeln!(std::io::stderr(), "{line}"));
                }
            };
            (stop, thread::spawn(lines))
        });
        Self { bar, n_finished, log }
    }

    /// One run more is done.
    pub(crate) fn run_finished(&self) {
        self.n_finished.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for TrainingProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some((stop, log)) = self.log.take() {
            drop(stop);
            drop(log.join());
        }
    }
}

const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// `12 of 70 runs finished, 34 % of the work after 5 min, about 10 min left; dpsgd, seed 3, epoch
/// 12`.
fn log_line(n_finished: usize, n_runs: usize, bar: &ProgressBar, seconds: f64) -> String {
    let done = bar.position() as f64 / bar.length().unwrap_or(0).max(1) as f64;
    let minutes = |seconds: f64| (seconds / 60.0).ceil();
    let left = if done > 0.0 {
        format!("about {} min left", minutes(seconds * (1.0 / done - 1.0).max(0.0)))
    } else {
        "no forecast yet".to_owned()
    };
    format!(
        "{n_finished} of {n_runs} runs finished, {:.0} % of the work after {} min, {left}; {}",
        100.0 * done,
        minutes(seconds),
        bar.message()
    )
}

/// One bar over the texts that are encoded.
#[cfg(feature = "bert")]
pub(crate) fn encoding_bar(n_texts: u64) -> ProgressBar {
    let bar = ProgressBar::new(n_texts);
    bar.set_style(style("{elapsed_precise} [{bar:32}] {percent:>3} %  {per_sec} texts  {eta} left"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A style from a template that is part of this program; a template that does not parse costs the
/// looks, nothing else.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("█▌ ")
}

/// One bar per downloaded file.
#[derive(Default)]
pub(crate) struct DownloadBar(Mutex<Option<ProgressBar>>);

impl DownloadBar {
    fn with(&self, f: impl FnOnce(&mut Option<ProgressBar>)) {
        match self.0.lock() {
            Ok(mut bar) => f(&mut bar),
            Err(poisoned) => f(&mut poisoned.into_inner()),
        }
    }
}

impl DownloadProgress for DownloadBar {
    fn started(&self, file: &str, total: u64, already: u64) {
        let bar = ProgressBar::new(total);
        bar.set_style(style("{msg} [{bar:32}] {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left"));
        bar.set_message(format!("downloading {file}"));
        bar.set_position(already);
        self.with(|slot| *slot = Some(bar));
    }

    fn advanced(&self, bytes: u64) {
        self.with(|slot| {
            if let Some(bar) = slot {
                bar.inc(bytes);
            }
        });
    }

    fn finished(&self) {
        self.with(|slot| {
            if let Some(bar) = slot.take() {
                bar.finish_and_clear();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_log_forecasts() {
        let bar = ProgressBar::hidden();
        bar.set_length(1_000);
        bar.set_message("dpsgd, seed 3, epoch 12");
        assert_eq!(
            log_line(0, 4, &bar, 60.0),
            "0 of 4 runs finished, 0 % of the work after 1 min, no forecast yet; dpsgd, seed 3, epoch 12"
        );
        bar.set_position(250);
        assert_eq!(
            log_line(1, 4, &bar, 300.0),
            "1 of 4 runs finished, 25 % of the work after 5 min, about 15 min left; dpsgd, seed 3, epoch 12"
        );
    }
}
