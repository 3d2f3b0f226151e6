//! A run that has ended, and is asked to go on.

use std::path::Path;

use super::{FitOptions, document, folder};
use crate::config::Config;
use crate::error::Result;
use crate::input;
use crate::release::{CONFIG, PRIVATE};
use crate::verify::{Verified, verify};

/// The release of a run that would be continued and has ended, if it began with the same configuration and
/// seed. Whoever starts a fit again until it has ended need not know when that was.
///
/// # Errors
/// As [`verify`], for a release that does not hold; [`FairdpError::Io`](crate::FairdpError::Io).
pub fn finished(config: &Path, options: &FitOptions) -> Result<Option<Verified>> {
    if !options.resume || !folder::has_ended(&options.out) {
        return Ok(None);
    }
    let kept = options.out.join(PRIVATE).join(CONFIG);
    let (text, _) = document(Config::text(config)?, config, options, &Config::of_file)?;
    if !kept.exists() || input::text(&kept)? != text {
        return Ok(None);
    }
    folder::clear(&options.out)?;
    let verified = verify(&options.out)?;
    Ok((verified.statement.seed == options.seed).then_some(verified))
}
