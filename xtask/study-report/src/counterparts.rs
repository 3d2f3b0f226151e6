//! Which figures of the papers our plots answer, and which groups those figures show.

use run_records::{ExperimentResults, GroupSize};

use super::figures::DrawnFigure;

/// A plot of an experiment, by the end of its file name, and the published figure that it is the
/// counterpart of.
struct Counterpart {
    experiment: &'static str,
    plot: &'static str,
    figure: &'static str,
}

const fn counterpart(experiment: &'static str, plot: &'static str, figure: &'static str) -> Counterpart {
    Counterpart { experiment, plot, figure }
}

/// In the order of the papers. Their figures that are drawings (Esipova's 1, 2 and 6) have no
/// counterpart.
const COUNTERPARTS: [Counterpart; 81] = [
    counterpart("esipova-dutch", "loss", "Esipova 2023, Figure 3 (top)"),
    counterpart("esipova-dutch", "mean-gradient-norm", "Esipova 2023, Figure 3 (bottom)"),
    counterpart("esipova-dutch-squashed", "loss", "Esipova 2023, Figure 3 (top)"),
    counterpart("esipova-dutch-squashed", "mean-gradient-norm", "Esipova 2023, Figure 3 (bottom)"),
    counterpart("esipova-adult", "direction", "Esipova 2023, Figure 4 (top)"),
    counterpart("esipova-adult", "magnitude", "Esipova 2023, Figure 4 (bottom)"),
    counterpart("esipova-adult", "bounds", "Esipova 2023, Figure 5"),
    counterpart("esipova-adult", "eigenvalue", "Esipova 2023, Figure 7"),
    counterpart("esipova-adult", "loss", "Esipova 2023, Figure 8 (top)"),
    counterpart("esipova-adult", "mean-gradient-norm", "Esipova 2023, Figure 8 (bottom)"),
    counterpart("esipova-mnist", "loss", "Esipova 2023, Figure 9 (top)"),
    counterpart("esipova-mnist", "mean-gradient-norm", "Esipova 2023, Figure 9 (bottom)"),
    counterpart("esipova-celeba", "loss", "Esipova 2023, Figure 10 (top)"),
    counterpart("esipova-celeba", "mean-gradient-norm", "Esipova 2023, Figure 10 (bottom)"),
    counterpart("esipova-dutch", "direction", "Esipova 2023, Figure 11 (top)"),
    counterpart("esipova-dutch", "magnitude", "Esipova 2023, Figure 11 (bottom)"),
    counterpart("esipova-dutch-squashed", "direction", "Esipova 2023, Figure 11 (top)"),
    counterpart("esipova-dutch-squashed", "magnitude", "Esipova 2023, Figure 11 (bottom)"),
    counterpart("esipova-mnist", "direction", "Esipova 2023, Figure 12 (top)"),
    counterpart("esipova-mnist", "magnitude", "Esipova 2023, Figure 12 (bottom)"),
    counterpart("esipova-celeba", "direction", "Esipova 2023, Figure 13 (top)"),
    counterpart("esipova-celeba", "magnitude", "Esipova 2023, Figure 13 (bottom)"),
    counterpart("esipova-adult", "noise", "Esipova 2023, Figure 14"),
    counterpart("esipova-dutch", "noise", "Esipova 2023, Figure 15"),
    counterpart("esipova-dutch-squashed", "noise", "Esipova 2023, Figure 15"),
    counterpart("esipova-mnist", "noise", "Esipova 2023, Figure 16"),
    counterpart("esipova-celeba", "noise", "Esipova 2023, Figure 17"),
    counterpart("xu-balanced-mnist", "loss", "Xu 2020, Figure 1 (losses, balanced)"),
    counterpart("xu-balanced-mnist", "mean-gradient-norm", "Xu 2020, Figure 1 (gradient norms, balanced)"),
    counterpart("xu-mnist", "loss", "Xu 2020, Figure 1 (losses, unbalanced)"),
    counterpart("xu-mnist", "mean-gradient-norm", "Xu 2020, Figure 1 (gradient norms, unbalanced)"),
    counterpart("xu-adult", "loss", "Xu 2020, Figure 2 (losses, Adult)"),
    counterpart("xu-adult", "mean-gradient-norm", "Xu 2020, Figure 2 (gradient norms, Adult)"),
    counterpart("xu-dutch", "loss", "Xu 2020, Figure 2 (losses, Dutch)"),
    counterpart("xu-dutch", "mean-gradient-norm", "Xu 2020, Figure 2 (gradient norms, Dutch)"),
    counterpart("xu-balanced-mnist", "accuracy", "Xu 2020, Figure 3 (a)"),
    counterpart("xu-mnist", "accuracy", "Xu 2020, Figure 3 (b)"),
    counterpart("xu-mnist", "loss", "Xu 2020, Figure 4 (losses)"),
    counterpart("xu-mnist", "mean-gradient-norm", "Xu 2020, Figure 4 (gradient norms)"),
    counterpart("xu-mnist", "thresholds", "Xu 2020, Figure 5"),
    counterpart("xu-adult", "loss", "Xu 2020, Figure 6 (losses)"),
    counterpart("xu-adult", "mean-gradient-norm", "Xu 2020, Figure 6 (gradient norms)"),
    counterpart("xu-unbalanced-dutch", "loss", "Xu 2020, Figure 7 (losses)"),
    counterpart("xu-unbalanced-dutch", "mean-gradient-norm", "Xu 2020, Figure 7 (gradient norms)"),
    counterpart("xu-mnist", "accuracy", "Xu 2021, Figure 1"),
    counterpart("xu-mnist", "thresholds", "Xu 2021, Figure 2"),
    counterpart("sweep-epochs-mnist", "over-epochs", "Xu 2021, Figure 3 (a)"),
    counterpart("sweep-noise-mnist", "over-epsilon", "Xu 2021, Figure 3 (b)"),
    counterpart("zhao-fashion-mnist", "thresholds", "Zhao 2025, Figure 1 (right)"),
    counterpart("zhao-resnet-18-mnist", "over-epsilon", "Zhao 2025, Figure 2 (a)"),
    counterpart("zhao-resnet-18-fashion-mnist", "over-epsilon", "Zhao 2025, Figure 2 (a)"),
    counterpart("zhao-mnist", "over-epsilon", "Zhao 2025, Figure 2 (b)"),
    counterpart("zhao-fashion-mnist", "over-epsilon", "Zhao 2025, Figure 2 (b)"),
    counterpart("zhao-adult", "over-epsilon", "Zhao 2025, Figure 3"),
    counterpart("zhao-dutch", "over-epsilon", "Zhao 2025, Figure 3"),
    counterpart("zhao-fashion-mnist-grid-4", "bounded-adaptive-landscape", "Zhao 2025, Figure 5"),
    counterpart(
        "zhao-fashion-mnist-grid-4-after-3",
        "bounded-adaptive-landscape",
        "Zhao 2025, Figure 5 (after 3 of 50 epochs)",
    ),
    counterpart(
        "zhao-fashion-mnist-grid-4-after-12",
        "bounded-adaptive-landscape",
        "Zhao 2025, Figure 5 (after 12 of 50 epochs)",
    ),
    counterpart("zhao-fashion-mnist-grid-4", "dpsgd-normalised-landscape", "Zhao 2025, Figure 5"),
    counterpart(
        "zhao-fashion-mnist-grid-4-after-3",
        "dpsgd-normalised-landscape",
        "Zhao 2025, Figure 5 (after 3 of 50 epochs)",
    ),
    counterpart(
        "zhao-fashion-mnist-grid-4-after-12",
        "dpsgd-normalised-landscape",
        "Zhao 2025, Figure 5 (after 12 of 50 epochs)",
    ),
    counterpart("zhao-mnist-grid-1", "bounded-adaptive-landscape", "Zhao 2025, Figure 6"),
    counterpart(
        "zhao-mnist-grid-1-after-3",
        "bounded-adaptive-landscape",
        "Zhao 2025, Figure 6 (after 3 of 50 epochs)",
    ),
    counterpart(
        "zhao-mnist-grid-1-after-12",
        "bounded-adaptive-landscape",
        "Zhao 2025, Figure 6 (after 12 of 50 epochs)",
    ),
    counterpart("zhao-mnist-grid-1", "dpsgd-normalised-landscape", "Zhao 2025, Figure 6"),
    counterpart(
        "zhao-mnist-grid-1-after-3",
        "dpsgd-normalised-landscape",
        "Zhao 2025, Figure 6 (after 3 of 50 epochs)",
    ),
    counterpart(
        "zhao-mnist-grid-1-after-12",
        "dpsgd-normalised-landscape",
        "Zhao 2025, Figure 6 (after 12 of 50 epochs)",
    ),
    counterpart("zhao-adult-grid-0.1", "bounded-adaptive-landscape", "Zhao 2025, Figure 7"),
    counterpart("zhao-adult-grid-0.1", "dpsgd-normalised-landscape", "Zhao 2025, Figure 7"),
    counterpart("zhao-dutch-grid-0.1", "bounded-adaptive-landscape", "Zhao 2025, Figure 8"),
    counterpart("zhao-dutch-grid-0.1", "dpsgd-normalised-landscape", "Zhao 2025, Figure 8"),
    counterpart("income-simple", "loss-gaps", "Soleymani 2025, Figure 2 (C = 0.1)"),
    counterpart("income-simple", "losses", "Soleymani 2025, Figure 3 (C = 0.1)"),
    counterpart("income-complex", "loss-gaps", "Soleymani 2025, Figure 2 (part)"),
    counterpart("income-complex", "losses", "Soleymani 2025, Figure 3 (part)"),
    counterpart("eicu", "loss-gaps", "Soleymani 2025, Figure 2 (part)"),
    counterpart("eicu", "losses", "Soleymani 2025, Figure 3 (part)"),
    counterpart("mimic", "loss-gaps", "Soleymani 2025, Figure 2 (part)"),
    counterpart("mimic", "losses", "Soleymani 2025, Figure 3 (part)"),
    counterpart("income-simple", "loss-gaps", "Soleymani 2025, Figure 4"),
    counterpart("income-simple", "losses", "Soleymani 2025, Figure 5"),
];

/// The classes of MNIST that both papers draw over time, and compare in their tables.
const DIGITS: [&str; 2] = ["2", "8"];

/// The groups whose lines are drawn, with their positions: all of them, or those that the papers
/// draw of the ten digits.
pub(super) fn drawn_groups(experiment: &ExperimentResults) -> impl Iterator<Item = (usize, &GroupSize)> {
    let digits = experiment.dataset.name == "mnist";
    let groups = experiment.dataset.groups.iter().enumerate();
    groups.filter(move |(_, group)| !digits || DIGITS.contains(&group.name.as_str()))
}

/// Says in the caption of a plot of [`drawn_groups`] that there are others.
pub(super) fn note_omitted(experiment: &ExperimentResults, mut figure: DrawnFigure) -> DrawnFigure {
    if drawn_groups(experiment).count() < experiment.dataset.groups.len() {
        figure.caption.push_str(" Drawn are the two digits that the papers draw.");
    }
    figure
}

/// Adds to each caption which published figures the plot answers.
pub(super) fn cite(figures: &mut [DrawnFigure]) {
    for figure in figures {
        let answered: Vec<&str> = COUNTERPARTS
            .iter()
            .filter(|counterpart| figure.stem == format!("{}-{}", counterpart.experiment, counterpart.plot))
            .map(|counterpart| counterpart.figure)
            .collect();
        if !answered.is_empty() {
            figure.caption = format!("{} Counterpart of {}.", figure.caption, answered.join("; "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{figures, fixture};

    #[test]
    fn captions_name_the_published_figures() {
        let experiment = fixture::study().experiments.remove(0);
        let mut figures = figures::figures(&experiment, &[], None).unwrap();
        cite(&mut figures);
        let of = |stem: &str| figures.iter().find(|figure| figure.stem == stem).unwrap().caption.as_str();
        assert!(of("esipova-adult-loss").ends_with(" Counterpart of Esipova 2023, Figure 8 (top)."));
        assert!(!of("esipova-adult-accuracy").contains("Counterpart"));
    }

    #[test]
    fn of_ten_digits_two_are_drawn() {
        let mut experiment = fixture::study().experiments.remove(0);
        let mut figures = figures::figures(&experiment, &[], None).unwrap();
        let whole = note_omitted(&experiment, figures.remove(0));
        assert_eq!(drawn_groups(&experiment).count(), 2);
        assert!(whole.caption.ends_with("MLP 2×256 tanh."));
        experiment.dataset.name = "mnist".to_owned();
        experiment.dataset.groups =
            (0..10).map(|digit| GroupSize { name: digit.to_string(), n_train: 1, n_test: 1 }).collect();
        assert_eq!(drawn_groups(&experiment).map(|(index, _)| index).collect::<Vec<_>>(), [2, 8]);
        assert!(note_omitted(&experiment, whole).caption.ends_with(" Drawn are the two digits that the papers draw."));
    }

    /// The documentation has a row for every published figure that is answered here.
    #[test]
    fn every_figure_is_documented() {
        let documented = include_str!("../../../docs/reproductions.md");
        for Counterpart { experiment, plot, figure } in COUNTERPARTS {
            let numbered = figure.split(" (").next().unwrap();
            let (paper, number) = numbered.split_once(", Figure ").unwrap();
            let row = format!("| {paper} | {number} |");
            assert!(documented.contains(&row), "{row} for {experiment}-{plot}");
        }
    }
}
