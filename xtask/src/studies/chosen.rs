//! A study chosen on the command line: a subcommand for each row of the table of studies.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};

use super::study::StudyArgs;
use super::table::{self, TRAINING, TrainingStudy};

/// Options that some studies are run with.
pub(crate) trait OfStudies: Args {
    /// Those studies, with a line of help for each.
    fn studies() -> impl Iterator<Item = (&'static TrainingStudy, &'static str)>;
}

impl OfStudies for StudyArgs {
    fn studies() -> impl Iterator<Item = (&'static TrainingStudy, &'static str)> {
        TRAINING.iter().map(|study| (study, study.about))
    }
}

/// A study and its options.
pub(crate) struct Chosen<A> {
    pub(crate) study: &'static TrainingStudy,
    pub(crate) args: A,
}

impl<A: OfStudies> Subcommand for Chosen<A> {
    fn augment_subcommands(command: Command) -> Command {
        A::studies().fold(command, |command, (study, about)| {
            command.subcommand(A::augment_args(Command::new(study.name)).about(about).long_about(about))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        A::studies().any(|(study, _)| study.name == name)
    }
}

impl<A: OfStudies> FromArgMatches for Chosen<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, matches) = matches.subcommand().ok_or(Error::new(ErrorKind::MissingSubcommand))?;
        let study = table::find(name).ok_or(Error::new(ErrorKind::InvalidSubcommand))?;
        Ok(Self { study, args: A::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
