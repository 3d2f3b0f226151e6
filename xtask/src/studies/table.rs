//! The studies that train, each once: the command line and its help, `reproduce all`, `analyse` and
//! the committed reports come from this table.

use super::study::{Study, StudyArgs};
use super::{
    adult, beyond, celeba, combinations, direction_vs_magnitude, dphpo, dutch, eicu, epsilon_sweep, fashion, grid,
    groups, income, mimic, mnist, resnet, sensitivity, uniform_clipping,
};

/// A study that trains.
#[derive(Debug)]
pub(crate) struct TrainingStudy {
    /// On the command line and in records.
    pub(crate) name: &'static str,
    /// The tables it answers.
    pub(crate) about: &'static str,
    /// The study with these options.
    pub(crate) make: fn(&StudyArgs) -> anyhow::Result<Study>,
    /// Steps taken apart, where the papers do that.
    pub(crate) analysis: Option<Analysis>,
}

/// What `analyse` does with a study.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Analysis {
    /// The figures it answers.
    pub(crate) about: &'static str,
    /// Of the data, for people.
    pub(crate) data: &'static str,
    /// Steps from one evaluation to the next, as published.
    pub(crate) every: u64,
    /// The same in a quick run, which would else end before its second evaluation.
    pub(crate) quick_every: u64,
}

/// The shortest first.
pub(crate) const TRAINING: &[TrainingStudy] = &[
    TrainingStudy {
        name: "income",
        about: "Adult by sex and age: Soleymani 2025 Tables 1 to 4, simple and complex model",
        make: income::study,
        analysis: None,
    },
    TrainingStudy {
        name: "eicu",
        about: "GOSSIS-1-eICU: Soleymani 2025 Tables 1 to 4",
        make: eicu::study,
        analysis: None,
    },
    TrainingStudy {
        name: "mimic",
        about: "MIMIC-III, length of stay: Soleymani 2025 Tables 1 to 4",
        make: mimic::study,
        analysis: None,
    },
    TrainingStudy {
        name: "adult",
        about: "Adult: Esipova 2023 Table 4; Xu 2021 Tables 1 and 2; Xu 2020 Tables 1, 2 and 5",
        make: adult::study,
        analysis: Some(Analysis {
            about: "Adult: Esipova 2023 Figures 4, 5, 7, 8 and 14; Xu 2020 Figures 2 and 6",
            data: "Adult",
            every: 50,
            quick_every: 50,
        }),
    },
    TrainingStudy {
        name: "dutch",
        about: "Dutch census: Esipova 2023 Table 5; Xu 2021 Tables 1 and 2; Xu 2020 Tables 1, 2 and 5",
        make: dutch::study,
        analysis: Some(Analysis {
            about: "Dutch census: Esipova 2023 Figures 3, 11 and 15; Xu 2020 Figures 2 and 7",
            data: "Dutch census",
            every: 100,
            quick_every: 100,
        }),
    },
    TrainingStudy {
        name: "grid",
        about: "Zhao 2025: grids of learning rates and bounds on Adult and Dutch, Table 6, Figures 3, 7 and 8",
        make: grid::study,
        analysis: None,
    },
    TrainingStudy {
        name: "sensitivity",
        about: "Target, multiplier and rate of an adaptive threshold, one at a time: Zhao 2025 Table 1's question on Adult and Dutch",
        make: sensitivity::study,
        analysis: None,
    },
    TrainingStudy {
        name: "combinations",
        about: "What the papers leave to future work: tanh with Global-Adapt, lower bounds for adaptive thresholds, Adult and Dutch",
        make: combinations::study,
        analysis: None,
    },
    TrainingStudy {
        name: "uniform-clipping",
        about: "A larger bound for everyone: Xu 2021 Table 3, Xu 2020 Table 4, and the same on both censuses",
        make: uniform_clipping::study,
        analysis: None,
    },
    TrainingStudy {
        name: "epsilon-sweep",
        about: "Accuracy over ε: Xu 2021 Figure 3, and the same on both censuses",
        make: epsilon_sweep::study,
        analysis: None,
    },
    TrainingStudy {
        name: "direction-vs-magnitude",
        about: "Esipova 2023 Table 1: training with one error of clipping at a time, MNIST with class 8 rare",
        make: direction_vs_magnitude::study,
        analysis: None,
    },
    TrainingStudy {
        name: "celeba",
        about: "CelebA, groups by eyeglasses: Esipova 2023 Table 3",
        make: celeba::study,
        analysis: Some(Analysis {
            about: "CelebA: Esipova 2023 Figures 10, 13 and 17",
            data: "CelebA",
            every: 200,
            quick_every: 40,
        }),
    },
    TrainingStudy {
        name: "beyond",
        about: "Conditioned training with adjusted logits against the papers' methods, on the same features at the same ε",
        make: beyond::study,
        analysis: None,
    },
    TrainingStudy {
        name: "groups",
        about: "The worst group and the average: weights of groups, class priors and conditioning against the papers' methods",
        make: groups::study,
        analysis: None,
    },
    TrainingStudy {
        name: "mnist",
        about: "MNIST with class 8 rare: Esipova 2023 Table 2; Xu 2021 Tables 1 and 2; Xu 2020 Tables 1 to 3; Zhao 2025 Table 5",
        make: mnist::study,
        analysis: Some(Analysis {
            about: "MNIST, groups are the classes: Esipova 2023 Figures 9, 12 and 16; Xu 2020 Figures 1 and 3 to 5; Xu 2021 \
                    Figures 1 and 2",
            data: "MNIST",
            every: 200,
            quick_every: 40,
        }),
    },
    TrainingStudy { name: "fashion", about: "Fashion-MNIST: Zhao 2025 Table 5", make: fashion::study, analysis: None },
    TrainingStudy {
        name: "resnet",
        about: "ResNet-18 on MNIST with class 8 rare and Fashion-MNIST: Zhao 2025 Figure 2 (a)",
        make: resnet::study,
        analysis: None,
    },
    TrainingStudy {
        name: "dphpo",
        about: "Zhao 2025 Figure 4: the search for rate, bound and batch size within ε, Adult, Dutch, MNIST and Fashion-MNIST",
        make: dphpo::study,
        analysis: None,
    },
];

/// The study with this name.
pub(crate) fn find(name: &str) -> Option<&'static TrainingStudy> {
    TRAINING.iter().find(|study| study.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The overview of the reproductions names every study, and no other.
    #[test]
    fn the_overview_has_every_study() {
        let page = include_str!("../../../docs/reproductions.md");
        let named: Vec<&str> = page
            .split("cargo xtask reproduce ")
            .skip(1)
            .map(|rest| rest.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next().unwrap())
            .collect();
        for study in TRAINING {
            assert!(named.contains(&study.name), "docs/reproductions.md does not have {}", study.name);
        }
        for name in named {
            let is_other = ["all", "accounting", "toy"].contains(&name);
            assert!(is_other || find(name).is_some(), "docs/reproductions.md has {name}, which is no study");
        }
    }
}
