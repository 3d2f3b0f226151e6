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

/// Terminals have 80 columns.
const BAR: &str = "{elapsed_precise} [{bar:16}] {percent:>3} %  {msg}";
const NO_BAR: &str = "{elapsed_precise}  {msg}";

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
    /// Rows that were read before it began: a stage that reads none has no rows to tell.
    rows_before: u64,
    /// Steps that were done when it began, now, and in all.
    steps: Option<[u64; 3]>,
    shown: Instant,
    is_told_to_end: bool,
}

impl ProgressDisplay {
    pub(super) fn new(said: Said, reading: &Arc<ReadProgress>, interrupt: &Interrupt) -> Self {
        let form = match (said, io::stderr().is_terminal()) {
            (Said::Nothing, _) => Form::Nowhere,
            (Said::Usual, true) => Form::Bar(ProgressBar::new(0)),
            (Said::Usual, false) | (Said::More, _) => Form::Lines,
        };
        let now = Instant::now();
        let stage =
            Stage { name: String::new(), begun: now, rows_before: 0, steps: None, shown: now, is_told_to_end: false };
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
                    rows_before: self.shared.reading.rows(),
                    steps: None,
                    shown: now,
                    is_told_to_end: stage.is_told_to_end,
                };
                log::add(&stage.name);
                match &self.shared.form {
                    Form::Nowhere => {}
                    Form::Lines => say(&stage.name),
                    Form::Bar(bar) => show(bar, &self.shared.now(&stage)),
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
        let now = self.now(&stage);
        if stage.shown.elapsed() >= self.interval && !now.done.is_empty() {
            stage.shown = Instant::now();
            let line = now.line();
            log::add(&line);
            if matches!(self.form, Form::Lines) {
                say(&line);
            }
        }
        if let Form::Bar(bar) = &self.form {
            show(bar, &now);
        }
    }

    /// How a stage goes.
    fn now(&self, stage: &Stage) -> Now {
        let elapsed = stage.begun.elapsed().as_secs_f64();
        let name = stage.name.clone();
        if let Some([first, done, of]) = stage.steps {
            let left = left(elapsed, (done - first) as f64, (of - done) as f64);
            return Now {
                name,
                share: Some(done as f64 / of.max(1) as f64),
                done: format!("step {done} of {of}"),
                left,
            };
        }
        let rows = self.reading.rows();
        if rows == stage.rows_before || name.is_empty() {
            return Now { name, ..Now::default() };
        }
        let share = self.reading.share();
        let left = share.map_or_else(String::new, |share| left(elapsed, share, 1.0 - share));
        let rate = rows as f64 / elapsed.max(1e-3);
        Now { name, share, done: format!("{} rows, {} rows/s", thousands(rows), thousands(rate as u64)), left }
    }
}

/// How far a stage is.
#[derive(Default)]
struct Now {
    name: String,
    /// The part that is done, if it is known.
    share: Option<f64>,
    /// Steps, or rows; empty where neither is known.
    done: String,
    /// The time that is left, if it is known.
    left: String,
}

impl Now {
    /// What is done first, as a narrow terminal cuts the end off.
    fn text(&self) -> String {
        let parts = [&self.done, &self.left, &self.name].into_iter().filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn line(&self) -> String {
        let percent = self.share.map_or_else(String::new, |share| format!("{:>3.0} %  ", 100.0 * share));
        percent + &self.text()
    }
}

fn show(bar: &ProgressBar, now: &Now) {
    let template = if now.share.is_some() { BAR } else { NO_BAR };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_length(1000);
    bar.set_position(now.share.map_or(0, |share| (1000.0 * share) as u64));
    bar.set_message(now.text());
}

/// The time that is left, in words, after this time for what is done; empty where it is not known.
fn left(elapsed: f64, done: f64, rest: f64) -> String {
    if done <= 0.0 || elapsed < 0.5 {
        return String::new();
    }
    let seconds = (elapsed * rest / done).ceil() as u64;
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s left"),
        (0, minutes) => format!("{minutes} min {} s left", seconds % 60),
        (hours, minutes) => format!("{hours} h {minutes} min left"),
    }
}

fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}  {line}", Timestamp::now().strftime("%H:%M:%SZ"));
}

fn say_and_log(line: &str) {
    log::add(line);
    say(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_took_its_time() {
        assert_eq!(left(10.0, 0.25, 0.75), "30 s left");
        assert_eq!(left(60.0, 10.0, 90.0), "9 min 0 s left");
        assert_eq!(left(3600.0, 1.0, 2.5), "2 h 30 min left");
        assert_eq!((left(0.1, 1.0, 1.0), left(5.0, 0.0, 1.0)), (String::new(), String::new()));
        assert_eq!((thousands(7), thousands(1_234_567)), ("7".into(), "1,234,567".into()));
    }
}
