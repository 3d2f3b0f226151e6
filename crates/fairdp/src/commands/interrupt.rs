//! Signals that end a command in order: the first one asks, the second one ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a signal asked for.
#[derive(Clone, Default)]
pub(super) struct Interrupt {
    is_asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

#[cfg(unix)]
mod names {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    pub(super) const SIGNALS: [(i32, &str); 3] = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM"), (SIGHUP, "SIGHUP")];
}

impl Interrupt {
    /// Sets this flag on the first signal. Signals that are ignored, as under `nohup`, stay so.
    #[cfg(unix)]
    pub(super) fn install(is_asked: Arc<AtomicBool>) -> Self {
        use signal_hook::flag;

        let signal = Arc::new(AtomicUsize::new(0));
        for (number, _) in names::SIGNALS.into_iter().filter(|(number, _)| !is_ignored(*number)) {
            // Where it cannot be asked for, a signal ends the command as it did before. Handlers are called in
            // this order: the flag is that of the signal before.
            let _ = flag::register_conditional_default(number, Arc::clone(&is_asked))
                .and_then(|_| flag::register_usize(number, Arc::clone(&signal), number as usize))
                .and_then(|_| flag::register(number, Arc::clone(&is_asked)));
        }
        Self { is_asked, signal }
    }

    #[cfg(not(unix))]
    pub(super) fn install(is_asked: Arc<AtomicBool>) -> Self {
        Self { is_asked, ..Self::default() }
    }

    pub(super) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// The name of the signal.
    pub(super) fn name(&self) -> &'static str {
        #[cfg(unix)]
        {
            let number = self.signal.load(Ordering::Relaxed);
            let found = names::SIGNALS.iter().find(|(known, _)| usize::try_from(*known) == Ok(number));
            found.map_or("a signal", |(_, name)| name)
        }
        #[cfg(not(unix))]
        "a signal"
    }
}

/// Whether whoever started the program ignores a signal.
#[cfg(unix)]
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    bits >> (number - 1) & 1 == 1
}
