//! Where the data of a command come from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use dp_data::DataLocator;

use super::progress::DownloadBar;
use crate::paths::workspace_root;

/// Where data come from.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataSource {
    /// Folder with the published files, looked at first (then `DP_DATA_DIR`, the cache, a download)
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Folder for downloads (datasets/cache of this workspace unless given)
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Download nothing
    #[arg(long)]
    offline: bool,
    /// Fail instead of using generated records
    #[arg(long)]
    require_real: bool,
}

impl DataSource {
    /// The folder that the command line names.
    pub(crate) fn data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    /// The locator with these settings and a progress bar on a terminal.
    pub(crate) fn locator(&self) -> DataLocator {
        let cache_dir = self.cache_dir.clone().unwrap_or_else(|| workspace_root().join("datasets/cache"));
        let mut locator = DataLocator::from_env(cache_dir);
        locator.data_dir.clone_from(&self.data_dir);
        locator.offline = self.offline;
        locator.require_real = self.require_real;
        locator.progress = Arc::new(DownloadBar::default());
        locator
    }
}
