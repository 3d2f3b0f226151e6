//! Progress on standard error: a bar on a terminal; elsewhere a line with its time for each stage, and one
//! every ten seconds.

use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dp_table::thousands;
use fairdp::{Progress, ReadProgress, printable};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;

use super::interrupt::Interrupt;
use super::log;

/// Time between two looks at how far a command is, and between two lines.
const TICK: Duration = Duration::from_millis(200);
const INTERVAL: Duration = Duration::from_secs(10);
const SHORT_INTERVAL: Duration = Duration::from_secs(1);

/// How much is said of a command while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Usual,
    /// Lines, on a terminal too, and one a second.
    More,
}

/// Shows progress until it is dropped.
pub(super) struct ProgressDisplay {
    shared: Arc<Shared>,
    ticker: Option<JoinHandle<()>>,
}

struct Shared {
    form: Form,
    interval: Duration,
    reading: Arc<ReadProgress>,
    interrupt: Interrupt,
    stage: Mutex<Stage>,
    is_over: AtomicBool,
}

enum Form {
    Nowhere,
    Lines,
    Bar(ProgressBar),
}

/// What a command does.
struct Stage {
    name: String,
    begun: Instant,
    /// Steps that were done when it began, now, and in all.
    steps: Option<[u64; 3]>,
    shown: Instant,
    is_told_to_end: bool,
}

impl ProgressDisplay {
    pub(super) fn new(said: Said, reading: &Arc<ReadProgress>, interrupt: &Interrupt) -> Self {
        let form = match (said, io::stderr().is_terminal()) {
            (Said::Nothing, _) => Form::Nowhere,
            (Said::Usual, true) => Form::Bar(bar()),
            (Said::Usual, false) | (Said::More, _) => Form::Lines,
        };
        let now = Instant::now();
        let stage = Stage { name: String::new(), begun: now, steps: None, shown: now, is_told_to_end: false };
        let shared = Arc::new(Shared {
            form,
            interval: if said == Said::More { SHORT_INTERVAL } else { INTERVAL },
            reading: Arc::clone(reading),
            interrupt: interrupt.clone(),
            stage: Mutex::new(stage),
            is_over: AtomicBool::new(false),
        });
        let ticking = Arc::clone(&shared);
        let tick = move || {
            while !ticking.is_over.load(Ordering::Relaxed) {
                ticking.tick();
                std::thread::park_timeout(TICK);
            }
        };
        // Without a thread nothing is shown between stages.
        let ticker = std::thread::Builder::new().spawn(tick).ok();
        Self { shared, ticker }
    }

    /// The one stage of a command, which is shown if it takes its time.
    pub(super) fn stage(&self, name: &str) {
        self.shared.stage().name = printable(name).into_owned();
    }

    pub(super) fn note(&self, progress: Progress<'_>) {
        let mut stage = self.shared.stage();
        match progress {
            Progress::Stage(name) => {
                let now = Instant::now();
                *stage = Stage {
                    name: printable(name).into_owned(),
                    begun: now,
                    steps: None,
                    shown: now,
                    is_told_to_end: stage.is_told_to_end,
                };
                log::add(&stage.name);
                match &self.shared.form {
                    Form::Nowhere => {}
                    Form::Lines => say(&stage.name),
                    Form::Bar(bar) => {
                        bar.set_length(0);
                        bar.set_message(stage.name.clone());
                    }
                }
            }
            Progress::Step { done, of } => {
                let first = stage.steps.filter(|[_, _, before]| *before == of);
                if first.is_none() {
                    stage.begun = Instant::now();
                }
                stage.steps = Some([first.map_or(done, |[first, ..]| first), done, of]);
            }
        }
    }

    /// Where the command was when it was interrupted.
    pub(super) fn place(&self) -> Option<(u64, u64)> {
        self.shared.stage().steps.map(|[_, done, of]| (done, of))
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            let _ = ticker.join();
        }
        if let Form::Bar(bar) = &self.shared.form {
            bar.finish_and_clear();
        }
    }
}

impl Shared {
    fn stage(&self) -> std::sync::MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) {
        let mut stage = self.stage();
        if self.interrupt.is_asked() && !stage.is_told_to_end {
            stage.is_told_to_end = true;
            say_and_log(&format!("{}: ending in order; another one ends it at once", self.interrupt.name()));
        }
        let Some((share, text)) = self.now(&stage) else { return };
        if stage.shown.elapsed() >= self.interval {
            stage.shown = Instant::now();
            let percent = share.map_or_else(String::new, |share| format!("{:>3.0} %  ", 100.0 * share));
            let line = format!("{percent}{text}");
            log::add(&line);
            if matches!(self.form, Form::Lines) {
                say(&line);
            }
        }
        if let Form::Bar(bar) = &self.form {
            bar.set_length(1000);
            bar.set_position(share.map_or(0, |share| (1000.0 * share) as u64));
            bar.set_message(text);
        }
    }

    /// The part of a stage that is done, if it is known, and how it goes.
    fn now(&self, stage: &Stage) -> Option<(Option<f64>, String)> {
        let elapsed = stage.begun.elapsed().as_secs_f64();
        if let Some([first, done, of]) = stage.steps {
            let left = left(elapsed, (done - first) as f64, (of - done) as f64);
            return Some((Some(done as f64 / of.max(1) as f64), format!("step {done} of {of}{left}")));
        }
        let rows = self.reading.rows();
        if rows == 0 || stage.name.is_empty() {
            return None;
        }
        let share = self.reading.share();
        let left = share.map_or_else(String::new, |share| left(elapsed, share, 1.0 - share));
        let rate = rows as f64 / elapsed.max(1e-3);
        Some((share, format!("{}: {} rows, {} rows/s{left}", stage.name, thousands(rows), thousands(rate as u64))))
    }
}

/// The time that is left, in words, after this time for what is done.
fn left(elapsed: f64, done: f64, rest: f64) -> String {
    if done <= 0.0 || elapsed < 0.5 {
        return String::new();
    }
    let seconds = (elapsed * rest / done).ceil() as u64;
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!(", {seconds} s left"),
        (0, minutes) => format!(", {minutes} min {} s left", seconds % 60),
        (hours, minutes) => format!(", {hours} h {minutes} min left"),
    }
}

fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}  {line}", Timestamp::now().strftime("%H:%M:%SZ"));
}

fn say_and_log(line: &str) {
    log::add(line);
    say(line);
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{elapsed_precise} [{bar:32}] {percent:>3} %  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_took_its_time() {
        assert_eq!(left(10.0, 0.25, 0.75), ", 30 s left");
        assert_eq!(left(60.0, 10.0, 90.0), ", 9 min 0 s left");
        assert_eq!(left(3600.0, 1.0, 2.5), ", 2 h 30 min left");
        assert_eq!((left(0.1, 1.0, 1.0), left(5.0, 0.0, 1.0)), (String::new(), String::new()));
        assert_eq!((thousands(7), thousands(1_234_567)), ("7".into(), "1,234,567".into()));
    }
}
