//! Progress bars. They write to the terminal only; in a pipe or a log they are silent.

use std::sync::Mutex;
use std::time::Duration;

use dp_data::DownloadProgress;
use indicatif::{ProgressBar, ProgressStyle};

/// One bar over all steps of a study, with throughput and time left.
pub(crate) fn training_bar(total_records: u64) -> ProgressBar {
    let bar = ProgressBar::new(total_records);
    bar.set_style(style("{elapsed_precise} [{bar:32}] {percent:>3} %  {per_sec} records  {eta} left  {msg}"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// One bar over the texts that are encoded.
#[cfg(feature = "bert")]
pub(crate) fn encoding_bar(n_texts: u64) -> ProgressBar {
    let bar = ProgressBar::new(n_texts);
    bar.set_style(style("{elapsed_precise} [{bar:32}] {percent:>3} %  {per_sec} texts  {eta} left"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A style from a template that is part of this program; a template that does not parse costs the looks, nothing else.
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
