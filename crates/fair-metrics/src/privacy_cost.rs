//! The cost of privacy to each group, in accuracy and in loss.

use crate::MetricError;
use crate::error::{check_defined_finite, check_len};

/// Privacy cost of each group: accuracy of the model without privacy minus accuracy of the private
/// one.
///
/// Positive when the group loses by privacy.
///
/// # Shapes
/// Both `[groups]`; returns `[groups]`.
///
/// # Edge cases
/// Undefined where either accuracy is undefined.
///
/// # Errors
/// [`MetricError::LengthMismatch`]; [`MetricError::NotFinite`] names the group.
///
/// # Source
/// Esipova 2023, Eq. 1, for one private model; the expectation over private models is taken by
/// [`Estimate`](crate::Estimate).
///
/// # Example
/// ```
/// let cost = fair_metrics::privacy_cost(&[Some(0.75), None], &[Some(0.5), Some(0.9)])?;
/// assert_eq!(cost, [Some(0.25), None]);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
pub fn privacy_cost(
    reference_accuracy: &[Option<f64>],
    private_accuracy: &[Option<f64>],
) -> Result<Vec<Option<f64>>, MetricError> {
    check_len("private_accuracy", private_accuracy.len(), "reference_accuracy", reference_accuracy.len())?;
    check_defined_finite("reference_accuracy", reference_accuracy)?;
    check_defined_finite("private_accuracy", private_accuracy)?;
    subtract(reference_accuracy, private_accuracy)
}

/// Excessive risk of each group: mean loss of the private model minus mean loss of the model
/// without privacy.
///
/// Positive when the group loses by privacy.
///
/// # Shapes
/// Both `[groups]`; returns `[groups]`.
///
/// # Edge cases
/// Undefined where either loss is undefined.
///
/// # Errors
/// [`MetricError::LengthMismatch`]; [`MetricError::NotFinite`] names the group.
///
/// # Source
/// Tran 2021; Esipova 2023, Eq. 2, for one private model.
pub fn excessive_risk(
    reference_loss: &[Option<f64>],
    private_loss: &[Option<f64>],
) -> Result<Vec<Option<f64>>, MetricError> {
    check_len("private_loss", private_loss.len(), "reference_loss", reference_loss.len())?;
    check_defined_finite("reference_loss", reference_loss)?;
    check_defined_finite("private_loss", private_loss)?;
    subtract(private_loss, reference_loss)
}

fn subtract(from: &[Option<f64>], what: &[Option<f64>]) -> Result<Vec<Option<f64>>, MetricError> {
    let differences: Vec<Option<f64>> = from.iter().zip(what).map(|(a, b)| Some((*a)? - (*b)?)).collect();
    check_defined_finite("difference", &differences)?;
    Ok(differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excessive_risk_is_private_minus_reference() {
        assert_eq!(excessive_risk(&[Some(0.25)], &[Some(0.75)]).unwrap(), [Some(0.5)]);
    }

    #[test]
    fn errors_name_the_group() {
        assert!(matches!(
            excessive_risk(&[Some(0.1), Some(f64::NAN)], &[Some(0.1), Some(0.1)]),
            Err(MetricError::NotFinite { parameter: "reference_loss", index: 1, .. })
        ));
        assert!(matches!(
            privacy_cost(&[Some(0.1)], &[]),
            Err(MetricError::LengthMismatch { parameter: "private_accuracy", .. })
        ));
    }
}
