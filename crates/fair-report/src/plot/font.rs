//! The one font of all plots: Ubuntu Light (Ubuntu Font Licence 1.0), as carried by the
//! `epaint_default_fonts` crate.

use std::sync::{Arc, OnceLock};

use plotters::style::{FontStyle, register_font};
use resvg::usvg::fontdb::Database;

use crate::error::{ReportError, Result};

/// Name under which plots ask for the font. Browsers have their own font of this generic name.
pub(super) const FAMILY: &str = "sans-serif";

/// Makes the font known to the plotting library, which measures text with it. Idempotent.
///
/// # Errors
/// If the embedded font cannot be parsed.
pub(super) fn register() -> Result<()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered =
        REGISTERED.get_or_init(|| register_font(FAMILY, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT).is_ok());
    if *registered { Ok(()) } else { Err(ReportError::Font) }
}

/// A font database that holds the embedded font alone and uses it for every generic family.
pub(super) fn database() -> Arc<Database> {
    let mut database = Database::new();
    database.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    let family = database.faces().next().and_then(|face| face.families.first()).map(|(name, _)| name.clone());
    if let Some(family) = family {
        database.set_sans_serif_family(family);
    }
    Arc::new(database)
}
