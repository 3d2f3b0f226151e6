//! A figure of ours beside a published one: does it agree, and if not, is the published size
//! excluded?

use fair_metrics::{Compared, Estimate, Interval, MetricError, t_interval, t_quantile};
use serde::{Deserialize, Serialize};

use super::{Direction, TestedClaim};

/// A difference counts as of the published size if it is at least this share of it and at most the
/// same share more than it.
pub const SIZE_MARGIN: f64 = 0.5;

/// A figure as a paper prints it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// The printed number.
    pub value: f64,
    /// Its standard error; `None` if none is printed. The figure is then taken for the mean of
    /// `runs` runs that vary as ours do.
    pub standard_error: Option<f64>,
    /// Runs that it is a mean of; 1 where a paper does not say.
    pub runs: usize,
    /// How far the unrounded number may lie from the printed one.
    pub rounding: f64,
}

/// How far our figure is from a published one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PublishedDifference {
    /// Ours minus theirs.
    pub difference: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Its degrees of freedom (Welch and Satterthwaite).
    pub degrees_of_freedom: f64,
    /// Rounding of the printed number, which no run makes smaller.
    pub rounding: f64,
}

impl PublishedDifference {
    /// Sets our mean over seeds beside a published figure.
    ///
    /// A printed figure is not exact. With a standard error of its own, both combine. Without one
    /// the paper's runs are taken to vary as ours do: our standard deviation times `√(1/n +
    /// 1/runs)`, the interval in which one more run of ours would lie. Taking the printed figure as
    /// exact instead would reject most rows of our own, held out.
    ///
    /// # Guarantee
    /// Approximate where errors combine. If the paper's five runs vary twice as much as our ten, a
    /// row of ten figures that is the same is called different in 9 % of cases instead of 5.
    ///
    /// # Edge cases
    /// `None` below two seeds: nothing is known of the spread.
    ///
    /// # Errors
    /// [`MetricError::InvalidParameter`] for a negative standard error or rounding, or zero runs;
    /// [`MetricError::NotFinite`].
    ///
    /// # Source
    /// Welch 1947; Satterthwaite 1946.
    pub fn new(ours: &Estimate, published: &PublishedFigure) -> Result<Option<Self>, MetricError> {
        let PublishedFigure { value, standard_error: theirs, runs, rounding } = *published;
        let not_negative = |name, value: f64| match value {
            value if value.is_finite() && value >= 0.0 => Ok(()),
            value => Err(MetricError::invalid(name, value, "a finite number of at least 0")),
        };
        if !value.is_finite() {
            return Err(MetricError::NotFinite { parameter: "published", index: 0, value });
        }
        not_negative("rounding", rounding)?;
        not_negative("standard_error", theirs.unwrap_or(0.0))?;
        if runs == 0 {
            return Err(MetricError::invalid("runs", 0, "at least 1 run"));
        }
        let (Some(mean), Some(error)) = (ours.mean, ours.standard_error) else { return Ok(None) };
        let degrees = (ours.n - 1) as f64;
        let (standard_error, degrees_of_freedom) = match theirs {
            None => (error * (1.0 + ours.n as f64 / runs as f64).sqrt(), degrees),
            Some(theirs) => {
                // The spread of a single run is unknown: its error is taken as it is printed.
                let their_degrees = if runs > 1 { (runs - 1) as f64 } else { f64::INFINITY };
                let (ours, theirs) = (error * error, theirs * theirs);
                let total = ours + theirs;
                let denominator = ours * ours / degrees + theirs * theirs / their_degrees;
                let fewest = degrees.min(their_degrees);
                // Of two runs Satterthwaite makes too many degrees: 7 % instead of 5 by simulation.
                let combined = if denominator > 0.0 && fewest >= 2.0 { total * total / denominator } else { fewest };
                (total.sqrt(), combined)
            }
        };
        Ok(Some(Self { difference: mean - value, standard_error, degrees_of_freedom, rounding }))
    }

    /// Half the width of the interval of the difference at this level of significance, rounding
    /// included.
    ///
    /// # Errors
    /// [`MetricError::InvalidParameter`] unless `0 < significance < 1`.
    pub fn half_width(&self, significance: f64) -> Result<f64, MetricError> {
        if !(significance > 0.0 && significance < 1.0) {
            return Err(MetricError::invalid("significance", significance, "a number above 0 and below 1"));
        }
        Ok(t_quantile(significance / 2.0, self.degrees_of_freedom) * self.standard_error + self.rounding)
    }

    /// Whether both may be the same: the interval holds zero.
    ///
    /// # Guarantee
    /// Two figures of the same quantity are told apart with probability at most `significance`. For
    /// a row of `m` figures that is to agree as a whole, divide it by `m`.
    ///
    /// # Errors
    /// As [`Self::half_width`].
    pub fn agrees(&self, significance: f64) -> Result<bool, MetricError> {
        Ok(self.difference.abs() <= self.half_width(significance)?)
    }
}

/// What our runs say about the size of a published difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// Ours is of the published size: within [`SIZE_MARGIN`] of it, whatever the uncertainty.
    Confirmed,
    /// Ours is not the published one.
    Excluded,
    /// Neither.
    Undecided,
}

/// A published difference beside ours: direction and size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EffectAnswer {
    /// Ours: mean and standard error over seeds.
    pub difference: Estimate,
    /// Interval of ours; `None` below two seeds, and for gaps of more than two groups
    /// ([`Compared::is_chosen`](Compared::is_chosen)).
    pub interval: Option<Interval>,
    /// Whether ours has the published direction.
    pub direction: Direction,
    /// Whether it has the published size; `None` if the paper prints none, and where there is no
    /// interval.
    pub size: Option<Size>,
}

impl EffectAnswer {
    /// Answers two questions about a published difference: is its direction confirmed, and is its
    /// size confirmed or excluded?
    ///
    /// A direction without a size hides much. A difference can be significant and a fifth of the
    /// published one, or not significant and the published one excluded all the same.
    ///
    /// - *Size confirmed*: the interval of ours minus theirs, at twice the level of significance
    ///   (two one-sided tests), lies within [`SIZE_MARGIN`] times the published difference around
    ///   zero.
    /// - *Size excluded*: that interval, at the level of significance, does not hold zero, and the
    ///   size is not confirmed. A difference of 6.0 that is precise enough to be told from a
    ///   published 6.9 is still of its size.
    ///
    /// # Guarantee
    /// At significance 0.05, by simulation of 10⁴ studies of ten seeds (`cargo xtask audit
    /// verdicts`): a published size that is ours is excluded in at most 5 %, a size that is off by
    /// half is confirmed in at most 5 %. See `docs/statistics.md`.
    ///
    /// # Errors
    /// [`MetricError::InvalidParameter`] unless `0 < significance < ½`; those of
    /// [`PublishedDifference::new`].
    ///
    /// # Source
    /// Two one-sided tests: Schuirmann 1987.
    ///
    /// # Example
    /// ```
    /// use fair_metrics::{SeedValues, compare};
    /// use study_report::statistics::{Direction, EffectAnswer, PublishedFigure, Size};
    ///
    /// // Ten seeds with a difference around 0.22 points; the paper prints 1.09.
    /// let larger = SeedValues::plain(&[0.20, 0.25, 0.21, 0.24, 0.19, 0.23, 0.22, 0.26, 0.18, 0.22])?;
    /// let smaller = SeedValues::plain(&[0.0; 10])?;
    /// let published = PublishedFigure { value: 1.09, standard_error: Some(0.1), runs: 10, rounding: 0.005 };
    /// let answer = EffectAnswer::new(&compare(&smaller, &larger)?, Some(&published), 0.05)?;
    /// assert_eq!((answer.direction, answer.size), (Direction::Confirmed, Some(Size::Excluded)));
    /// # Ok::<(), fair_metrics::MetricError>(())
    /// ```
    pub fn new(
        compared: &Compared,
        published: Option<&PublishedFigure>,
        significance: f64,
    ) -> Result<Self, MetricError> {
        if !(significance > 0.0 && significance < 0.5) {
            return Err(MetricError::invalid("significance", significance, "a number between 0 and 1/2"));
        }
        let interval = t_interval(&compared.difference, 1.0 - significance)?.filter(|_| !compared.is_chosen);
        let direction = TestedClaim::new(std::slice::from_ref(compared)).direction(significance);
        let published = published.filter(|_| !compared.is_chosen);
        let size =
            published.map(|published| size(&compared.difference, published, significance)).transpose()?.flatten();
        Ok(Self { difference: compared.difference, interval, direction, size })
    }
}

fn size(ours: &Estimate, published: &PublishedFigure, significance: f64) -> Result<Option<Size>, MetricError> {
    let Some(difference) = PublishedDifference::new(ours, published)? else { return Ok(None) };
    let farthest = difference.difference.abs() + difference.half_width(2.0 * significance)?;
    Ok(Some(if farthest <= SIZE_MARGIN * published.value.abs() {
        Size::Confirmed
    } else if !difference.agrees(significance)? {
        Size::Excluded
    } else {
        Size::Undecided
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(mean: f64, standard_error: f64, n: usize) -> Estimate {
        Estimate { mean: Some(mean), standard_error: Some(standard_error), n, n_undefined: 0 }
    }

    fn printed(value: f64, standard_error: Option<f64>, runs: usize) -> PublishedFigure {
        PublishedFigure { value, standard_error, runs, rounding: 0.0 }
    }

    /// A figure without an error is one more run: √(1 + 10) standard errors of ten seeds, t = 2.262
    /// at nine degrees.
    #[test]
    fn a_figure_without_an_error_is_one_more_run() {
        let difference = PublishedDifference::new(&ours(0.5, 0.01, 10), &printed(0.56, None, 1)).unwrap().unwrap();
        assert!((difference.standard_error - 0.01 * 11.0_f64.sqrt()).abs() < 1e-15);
        assert!((difference.half_width(0.05).unwrap() - 2.2622 * 0.01 * 11.0_f64.sqrt()).abs() < 1e-5);
        assert!(difference.agrees(0.05).unwrap());
        assert!(!difference.agrees(0.2).unwrap());
    }

    /// Equal errors of five and ten runs: degrees (2)² / (1/9 + 1/4) = 11.08.
    #[test]
    fn errors_combine() {
        let difference = PublishedDifference::new(&ours(0.5, 0.03, 10), &printed(0.4, Some(0.03), 5)).unwrap().unwrap();
        assert!((difference.standard_error - 0.03 * 2.0_f64.sqrt()).abs() < 1e-15);
        assert!((difference.degrees_of_freedom - 4.0 / (1.0 / 9.0 + 1.0 / 4.0)).abs() < 1e-9);
        let exact = PublishedDifference::new(&ours(0.5, 0.0, 10), &printed(0.4, Some(0.0), 5)).unwrap().unwrap();
        assert!(!exact.agrees(0.05).unwrap());
    }

    #[test]
    fn rounding_is_no_matter_of_chance() {
        let figure = PublishedFigure { rounding: 0.005, ..printed(0.5, Some(0.0), 5) };
        let difference = PublishedDifference::new(&ours(0.504, 0.0, 10), &figure).unwrap().unwrap();
        assert!(difference.agrees(0.05).unwrap() && difference.agrees(0.999).unwrap());
    }

    #[test]
    fn sizes() {
        let of = |mean, error, value| size(&ours(mean, error, 10), &printed(value, Some(0.0), 5), 0.05).unwrap();
        // Told from 6.9, and of its size.
        assert_eq!(of(6.0, 0.1, 6.9), Some(Size::Confirmed));
        assert_eq!(of(-0.4, 0.42, 10.1), Some(Size::Excluded));
        assert_eq!(of(0.22, 0.05, 1.09), Some(Size::Excluded));
        assert_eq!(of(1.0, 0.5, 1.5), Some(Size::Undecided));
        assert_eq!(of(1.0, 0.1, -1.0), Some(Size::Excluded));
        let one = Estimate { standard_error: None, n: 1, ..ours(1.0, 0.0, 1) };
        assert_eq!(size(&one, &printed(1.0, None, 1), 0.05).unwrap(), None);
    }

    #[test]
    fn impossible_figures() {
        let estimate = ours(0.5, 0.1, 5);
        for figure in [printed(f64::NAN, None, 1), printed(0.5, Some(-0.1), 1), printed(0.5, None, 0)] {
            assert!(PublishedDifference::new(&estimate, &figure).is_err(), "{figure:?}");
        }
    }
}
