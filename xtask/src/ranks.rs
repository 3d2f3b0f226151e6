//! The processes that a launcher started, which share the runs of a study.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::bail;
use dp_train::ranks::{Alone, Collective, from_environment};

use crate::terminal;

static RANKS: Mutex<Option<Arc<dyn Collective>>> = Mutex::new(None);

/// The processes; this one alone outside of [`on_all`].
pub(crate) fn ranks() -> Arc<dyn Collective> {
    RANKS.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_else(|| Arc::new(Alone))
}

/// Does something on every process of the launcher, if there is one. If one fails all end: the
/// others would wait for it.
///
/// # Errors
/// Those of `work`, and of the launcher.
pub(crate) fn on_all(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let ranks = from_environment()?;
    let set = |value| *RANKS.lock().unwrap_or_else(PoisonError::into_inner) = value;
    set(Some(ranks.clone()));
    let result = work();
    set(None);
    if let Err(error) = &result
        && ranks.size() > 1
    {
        eprintln!("rank {}: error: {}", ranks.rank(), terminal::message(error));
        ranks.abort(1);
    }
    result
}

/// Refuses what only one process can do.
///
/// # Errors
/// If there are several.
pub(crate) fn ensure_alone(what: &str) -> anyhow::Result<()> {
    let size = ranks().size();
    if size > 1 {
        bail!("{what}: started on {size} processes, expected 1");
    }
    Ok(())
}
