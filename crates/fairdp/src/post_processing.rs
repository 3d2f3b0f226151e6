//! Other decisions from what was released already, at no further ε.

use std::collections::BTreeMap;
use std::path::Path;

use fair_decisions::{Aim, Mode};

use crate::account::Account;
use crate::curves::{CURVES, Curves};
use crate::error::{FairdpError, Result};
use crate::fairness::FairnessReport;
use crate::group_scores::GroupScores;
use crate::input;
use crate::model::{FittedModel, PIPELINE, WEIGHTS};
use crate::output;
use crate::price::Pricing;
use crate::release::{PRIVATE, RELEASE, ReleaseFiles, STATEMENT};
use crate::scores::{SCORES, ScoresFile};
use crate::seal::{sha256, unsealed};
use crate::statement::{Derivation, ReleaseStatement};
use crate::unfinished::release_of;
use crate::verify::verify;

/// The fairness report of a model whose thresholds follow from these scores.
pub(crate) fn report(scores: &ScoresFile, aim: &Aim, model: &FittedModel) -> Result<FairnessReport> {
    let (encoding, classes) = (model.encoding(), model.classes());
    let groups = encoding.groups();
    let measured = scores.test.as_ref().map(|counts| GroupScores::new(scores, counts, encoding));
    let decision = model.pipeline().decision;
    let pricing = scores.training.as_ref().map(|counts| Pricing {
        scores,
        counts,
        measured: measured.as_ref(),
        decision,
        groups,
        classes,
    });
    let asked = pricing.as_ref().map(|pricing| pricing.chosen(aim));
    let mut report = match &measured {
        None => FairnessReport::unmeasured(classes),
        Some(measured) => {
            let common = measured.common();
            let mixtures = asked.as_ref().map_or(&common, |(mixtures, _)| mixtures);
            FairnessReport::of_scores(measured, mixtures, classes)?
        }
    };
    if let Some(pricing) = pricing {
        report.price_list = pricing.list(&aim.with_one_threshold(false))?;
        report.price_list_of_one_threshold = pricing.list(&aim.with_one_threshold(true))?;
        report.price_curve = pricing.curve(aim)?;
    }
    report.class = scores.class().map(ToOwned::to_owned);
    report.thresholds = asked.map(|(_, thresholds)| thresholds).filter(|_| aim.mode != Mode::None);
    Ok(report)
}

/// Another release of a run: the same model with the decisions of another mode, from the scores that it has
/// released. It costs no privacy, and its statement has the digests of both.
///
/// `release` has the files of a release by name.
///
/// # Errors
/// [`FairdpError::File`] for files that are damaged, or a release without scores of groups;
/// [`FairdpError::Decision`] for limits out of range.
pub fn with_fairness(release: &BTreeMap<String, Vec<u8>>, aim: &Aim) -> Result<BTreeMap<String, Vec<u8>>> {
    let (files, statement) = derived(release, aim)?;
    files.with_statement(statement)
}

/// The same for the folder of a run, or its release: writes a run's folder.
///
/// # Errors
/// [`FairdpError::NotVerified`] for a release that does not hold, [`FairdpError::Folder`] for a folder that is
/// taken, and those of [`with_fairness`].
pub fn write_with_fairness(folder: &Path, aim: &Aim, out: &Path) -> Result<FairnessReport> {
    let (release, _) = files_of(folder)?;
    let (files, statement) = derived(&release, aim)?;
    if out.exists() {
        return Err(FairdpError::folder(out, "exists", "give a new one"));
    }
    output::private_folder(&out.join(PRIVATE))?;
    let account = Account::of(statement.events.iter().cloned())?;
    files.publish(out, statement, &account)?;
    Ok(verify(&out.join(RELEASE))?.fairness)
}

/// The files of the release in a folder by name, and its statement, after the checks of [`verify`].
pub(crate) fn files_of(folder: &Path) -> Result<(BTreeMap<String, Vec<u8>>, ReleaseStatement)> {
    let statement = verify(folder)?.statement;
    let place = release_of(folder)?;
    let mut release = BTreeMap::new();
    for name in statement.files.keys().map(String::as_str).chain([STATEMENT]) {
        release.insert(name.to_owned(), input::bytes(&place.join(name))?);
    }
    Ok((release, statement))
}

fn derived(release: &BTreeMap<String, Vec<u8>>, aim: &Aim) -> Result<(ReleaseFiles, ReleaseStatement)> {
    let file = |name: &str| {
        let missing = || FairdpError::file(Path::new(name), "is not in the release");
        release.get(name).map(Vec::as_slice).ok_or_else(missing)
    };
    let bytes = file(STATEMENT)?;
    let text = String::from_utf8(bytes.to_vec()).map_err(|error| FairdpError::file(Path::new(STATEMENT), error))?;
    let mut statement: ReleaseStatement = unsealed(Path::new(STATEMENT), &text)?;
    for (name, digest) in &statement.files {
        if sha256(file(name)?) != *digest {
            return Err(FairdpError::file(Path::new(name), "does not have the digest of the statement"));
        }
    }
    let weights = file(WEIGHTS)?.to_vec();
    let mut model = FittedModel::from_bytes(file(PIPELINE)?, &weights)?;
    let none = "has no scores of training records by group: fit with two groups, and of more than two classes with \
                fairness.class, by a version that releases them";
    if !release.contains_key(SCORES) {
        return Err(FairdpError::file(Path::new("the release"), none));
    }
    let scores = ScoresFile::from_json(file(SCORES)?, model.encoding().groups(), model.classes())?;
    let Some(counts) = &scores.training else { return Err(FairdpError::file(Path::new(SCORES), none)) };
    let (groups, classes) = (model.encoding().groups().to_vec(), model.classes().to_vec());
    let decision = model.pipeline().decision;
    let (_, thresholds) = crate::thresholds::chosen(&scores, counts, aim, decision, &groups, &classes);
    model.set_thresholds(&thresholds)?;
    let fairness = report(&scores, aim, &model)?;
    // Of several in turn, the first is what was fitted.
    let fitted = statement.derived_from.take().map_or_else(|| sha256(bytes), |before| before.fitted);
    let Aim { mode, max_loss, max_gap, one_threshold, coins, .. } = *aim;
    statement.derived_from =
        Some(Derivation { fitted, from: sha256(bytes), mode, max_loss, max_gap, one_threshold, coins });
    statement.files = BTreeMap::new();
    let mut files = ReleaseFiles::default();
    let curves = match release.get(CURVES) {
        Some(bytes) => Curves::from_json(bytes)?,
        None => Curves::of(&model, None, None),
    };
    files.add_model(&model, weights, &curves, Some(&scores), &statement, &fairness)?;
    Ok((files, statement))
}
