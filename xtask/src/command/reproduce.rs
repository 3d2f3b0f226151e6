//! `cargo xtask reproduce STUDY`.

use clap::{Args, Subcommand};

use crate::ranks::ensure_alone;
use crate::studies::study::StudyArgs;
use crate::studies::{
    accounting, adult, all, beyond, celeba, direction_vs_magnitude, dphpo, dutch, eicu, epsilon_sweep, fashion, grid,
    income, mimic, mnist, toy, uniform_clipping,
};

/// Options of `cargo xtask reproduce`.
#[derive(Args)]
pub(crate) struct ReproduceArgs {
    #[command(subcommand)]
    study: Study,
}

#[derive(Subcommand)]
enum Study {
    /// Adult: Esipova 2023 Table 4; Xu 2021 Tables 1 and 2; Xu 2020 Table 5.
    Adult(StudyArgs),
    /// Dutch census: Esipova 2023 Table 5; Xu 2021 Tables 1 and 2; Xu 2020 Table 5.
    Dutch(StudyArgs),
    /// MNIST with class 8 rare: Esipova 2023 Table 2; Xu 2021 Tables 1 and 2; Xu 2020 Table 3; Zhao
    /// 2025 Table 5.
    Mnist(StudyArgs),
    /// Fashion-MNIST: Zhao 2025 Table 5.
    Fashion(StudyArgs),
    /// CelebA, groups by eyeglasses: Esipova 2023 Table 3.
    Celeba(StudyArgs),
    /// Adult by sex and age: Soleymani 2025 Tables 1 to 4, simple and complex model.
    Income(StudyArgs),
    /// GOSSIS-1-eICU: Soleymani 2025 Tables 1 to 4.
    Eicu(StudyArgs),
    /// MIMIC-III, length of stay: Soleymani 2025 Tables 1 to 4.
    Mimic(mimic::MimicArgs),
    /// A larger bound for everyone: Xu 2021 Table 3, and the same on both censuses.
    UniformClipping(StudyArgs),
    /// Accuracy over ε: Xu 2021 Figure 3, and the same on both censuses.
    EpsilonSweep(StudyArgs),
    /// Zhao 2025: grids of learning rates and bounds on Adult and Dutch, Table 6, Figures 3, 7
    /// and 8.
    Grid(StudyArgs),
    /// Zhao 2025 Figure 4: the search for rate, bound and batch size within ε, Adult, Dutch, MNIST
    /// and Fashion-MNIST.
    Dphpo(StudyArgs),
    /// Esipova 2023 Table 1: training with one error of clipping at a time, MNIST with class 8
    /// rare.
    DirectionVsMagnitude(StudyArgs),
    /// Conditioned training with adjusted logits against the papers' methods, on the same features
    /// at the same ε.
    Beyond(StudyArgs),
    /// Every study in turn, those that fail left behind, and one index of all reports. Options that
    /// choose a part of a study are refused.
    All(StudyArgs),
    /// Every published ε beside ours, under each conversion.
    Accounting(accounting::AccountingArgs),
    /// Zhao 2025 Figure 1, left: a threshold vanishes, and its repair.
    Toy(toy::ToyArgs),
}

/// Runs a study and writes its report.
///
/// # Errors
/// If data, training or report fail.
pub(crate) fn run(args: ReproduceArgs) -> anyhow::Result<()> {
    if matches!(args.study, Study::All(_) | Study::Accounting(_) | Study::Toy(_)) {
        ensure_alone("all, accounting and toy")?;
    }
    match args.study {
        Study::Adult(args) => adult::study(&args)?.run(&args),
        Study::Dutch(args) => dutch::study(&args)?.run(&args),
        Study::Mnist(args) => mnist::study(&args)?.run(&args),
        Study::Fashion(args) => fashion::study(&args)?.run(&args),
        Study::Celeba(args) => celeba::study(&args)?.run(&args),
        Study::Income(args) => income::study(&args)?.run(&args),
        Study::Eicu(args) => eicu::study(&args)?.run(&args),
        Study::Mimic(args) => mimic::run(&args),
        Study::UniformClipping(args) => uniform_clipping::study(&args)?.run(&args),
        Study::EpsilonSweep(args) => epsilon_sweep::study(&args)?.run(&args),
        Study::Grid(args) => grid::study(&args)?.run(&args),
        Study::Dphpo(args) => dphpo::study(&args)?.run(&args),
        Study::DirectionVsMagnitude(args) => direction_vs_magnitude::study(&args)?.run(&args),
        Study::Beyond(args) => beyond::study(&args)?.run(&args),
        Study::All(args) => all::run(&args),
        Study::Accounting(args) => accounting::run(&args),
        Study::Toy(args) => toy::run(&args),
    }
}
