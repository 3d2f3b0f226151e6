//! What a ledger was, kept elsewhere: who shortens the ledger or puts an earlier copy in its place
//! cannot change it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::LedgerFile;
use crate::error::{FairdpError, Result};
use crate::input;
use crate::output::{self, Readers};
use crate::seal::{sealed, unsealed};

const VERSION: u32 = 1;

/// A witness file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Witness {
    version: u32,
    /// Fits that the ledger had.
    fits: usize,
    /// The seal of its last line.
    last: String,
}

impl Witness {
    fn of(ledger: &LedgerFile) -> Self {
        let fits = ledger.fits.len();
        Self { version: VERSION, fits, last: ledger.seal(fits).to_owned() }
    }

    /// Refuses a ledger that is not the one that the witness saw, or one that goes on from it. A
    /// witness that is not there yet has seen nothing.
    pub(super) fn check(path: &Path, ledger: Option<&LedgerFile>, ledger_path: &Path) -> Result<()> {
        if !path.exists() {
            return Ok(());
        }
        let seen: Self = unsealed(path, &input::text(path)?)?;
        if seen.version != VERSION {
            return Err(FairdpError::file(path, format!("version {}: this program reads {VERSION}", seen.version)));
        }
        let witness = path.display();
        let problem = match ledger {
            None => format!("is not there, and the witness `{witness}` saw {} fits in it", seen.fits),
            Some(ledger) if ledger.fits.len() < seen.fits => {
                let found = ledger.fits.len();
                format!("was shortened or replaced: it has {found} fits, and the witness `{witness}` saw {}", seen.fits)
            }
            Some(ledger) if ledger.seal(seen.fits) != seen.last => {
                format!("was replaced: its first {} fits are not those that the witness `{witness}` saw", seen.fits)
            }
            Some(_) => return Ok(()),
        };
        Err(FairdpError::BrokenLedger { ledger: ledger_path.to_path_buf(), problem })
    }

    /// Lets the witness see the ledger.
    pub(super) fn write(path: &Path, ledger: &LedgerFile) -> Result<()> {
        output::write(path, sealed(&Self::of(ledger))?.as_bytes(), Readers::Owner)
    }
}
