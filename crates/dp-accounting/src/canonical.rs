//! Events as bytes that never change: what ledgers hash.
//!
//! `Debug` text may change with the compiler, and JSON with the writer; this encoding is our own.
//! An event is one byte for its kind and its fields in order. A number is eight bytes,
//! little-endian: an `f64` by its bits, a count as `u64`. A list is its length and its items. The
//! bytes of an event are never the beginning of another's.

use crate::DpEvent;

/// Version of the encoding, part of every digest. A change of any byte below is a new version.
pub(crate) const VERSION: u32 = 2;

/// The bytes of an event.
pub(crate) fn bytes(event: &DpEvent) -> Vec<u8> {
    let (mut out, mut pending) = (Vec::new(), vec![event]);
    while let Some(event) = pending.pop() {
        push(event, &mut out);
        // The fields of an event come before its parts.
        pending.extend(event.parts().iter().rev());
    }
    out
}

/// The bytes of an event but for its parts.
fn push(event: &DpEvent, out: &mut Vec<u8>) {
    match event {
        DpEvent::NonPrivate => out.push(0),
        DpEvent::Gaussian { noise_multiplier } => {
            out.push(1);
            float(noise_multiplier.get(), out);
        }
        DpEvent::Laplace { noise_multiplier } => {
            out.push(2);
            float(noise_multiplier.get(), out);
        }
        DpEvent::JointGaussian { noise_multipliers } => {
            out.push(3);
            count(noise_multipliers.len() as u64, out);
            for multiplier in noise_multipliers {
                float(multiplier.get(), out);
            }
        }
        DpEvent::RandomisedResponse { epsilon, n_outcomes } => {
            out.push(4);
            float(epsilon.get(), out);
            count(u64::from(n_outcomes.get()), out);
        }
        DpEvent::ZeroConcentrated { rho } => {
            out.push(5);
            float(rho.get(), out);
        }
        DpEvent::PoissonSampled { sampling_rate, .. } => {
            out.push(6);
            float(sampling_rate.get(), out);
        }
        DpEvent::FixedSizeSampled { n_records, sample_size, .. } => {
            out.push(7);
            count(*n_records, out);
            count(*sample_size, out);
        }
        DpEvent::Composed(events) => {
            out.push(8);
            count(events.len() as u64, out);
        }
        DpEvent::SelfComposed { count: times, .. } => {
            out.push(9);
            count(*times, out);
        }
        DpEvent::OneOf(events) => {
            out.push(10);
            count(events.len() as u64, out);
        }
        DpEvent::RepeatAndSelect { trials, .. } => {
            out.push(11);
            let (family, parameters) = trials.family();
            out.push(family);
            for parameter in parameters {
                float(parameter, out);
            }
        }
        _ => push_later_kind(event, out),
    }
}

/// Kinds of mechanisms that came later; they hold no other events.
fn push_later_kind(event: &DpEvent, out: &mut Vec<u8>) {
    match event {
        DpEvent::EpsilonDelta { epsilon, delta } => {
            out.push(12);
            float(epsilon.get(), out);
            float(delta.get(), out);
        }
        DpEvent::BandedMatrixFactorisation(banded) => {
            out.push(13);
            let (noise_multiplier, sampling_rate, bands, steps) = banded.fields();
            float(noise_multiplier.get(), out);
            float(sampling_rate.get(), out);
            count(bands, out);
            count(steps, out);
        }
        DpEvent::TreeAggregation(tree) => {
            out.push(if tree.has_incomplete_nodes() { 20 } else { 14 });
            let (noise_multiplier, leaves, participations, separation) = tree.fields();
            float(noise_multiplier.get(), out);
            count(leaves, out);
            count(participations, out);
            count(separation, out);
        }
        DpEvent::MixtureOfGaussians(mixture) => {
            out.push(15);
            float(mixture.noise_multiplier().get(), out);
            count(mixture.amounts().len() as u64, out);
            for value in mixture.amounts().iter().chain(mixture.probabilities()) {
                float(*value, out);
            }
        }
        DpEvent::DiscreteLaplace { scale, sensitivity } => {
            out.push(16);
            float(scale.get(), out);
            count(u64::from(*sensitivity), out);
        }
        DpEvent::DiscreteGaussian { sigma, sensitivity } => {
            out.push(17);
            float(sigma.get(), out);
            count(u64::from(*sensitivity), out);
        }
        DpEvent::TruncatedPoissonGaussian { noise_multiplier, sampling_rate, n_records, max_batch_size } => {
            out.push(18);
            float(noise_multiplier.get(), out);
            float(sampling_rate.get(), out);
            count(*n_records, out);
            count(*max_batch_size, out);
        }
        DpEvent::RandomAllocation { noise_multiplier, steps, participations } => {
            out.push(19);
            float(noise_multiplier.get(), out);
            count(*steps, out);
            count(*participations, out);
        }
        DpEvent::RenyiAtOrder { order, divergence } => {
            out.push(21);
            float(order.get(), out);
            float(divergence.get(), out);
        }
        // All others are above.
        _ => out.push(u8::MAX),
    }
}

fn float(value: f64, out: &mut Vec<u8>) {
    out.extend(value.to_bits().to_le_bytes());
}

fn count(value: u64, out: &mut Vec<u8>) {
    out.extend(value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BandedMatrixFactorisation, Delta, Divergence, Epsilon, MixtureOfGaussians, NoiseMultiplier, OutcomeCount,
        PositiveEpsilon, RenyiOrder, Rho, SamplingRate, TreeAggregation, TrialCount,
    };

    fn hex_of(bytes: &[u8]) -> String {
        use std::fmt::Write as _;
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn hexadecimal(event: &DpEvent) -> String {
        hex_of(&bytes(event))
    }

    /// Every kind of event, by hand: 1.0 is 3ff0…, 0.5 is 3fe0…, 2.0 is 4000…
    #[test]
    fn bytes_by_hand() {
        let gaussian = DpEvent::gaussian(NoiseMultiplier::new(1.0).unwrap());
        let (one, half, two) = ("000000000000f03f", "000000000000e03f", "0000000000000040");
        let number = |n: u64| hex_of(&n.to_le_bytes());
        let sampled = gaussian.clone().poisson_sampled(SamplingRate::new(0.5).unwrap());
        let cases = [
            (DpEvent::NonPrivate, "00".to_owned()),
            (gaussian.clone(), format!("01{one}")),
            (DpEvent::laplace(NoiseMultiplier::new(2.0).unwrap()), format!("02{two}")),
            (
                DpEvent::joint_gaussian([1.0, 2.0].map(|sigma| NoiseMultiplier::new(sigma).unwrap())),
                format!("03{}{one}{two}", number(2)),
            ),
            (
                DpEvent::RandomisedResponse {
                    epsilon: PositiveEpsilon::new(1.0).unwrap(),
                    n_outcomes: OutcomeCount::new(3).unwrap(),
                },
                format!("04{one}{}", number(3)),
            ),
            (DpEvent::ZeroConcentrated { rho: Rho::new(0.5).unwrap() }, format!("05{half}")),
            (
                DpEvent::RenyiAtOrder {
                    order: RenyiOrder::new(2.0).unwrap(),
                    divergence: Divergence::new(0.5).unwrap(),
                },
                format!("15{two}{half}"),
            ),
            (sampled.clone(), format!("06{half}01{one}")),
            (gaussian.clone().fixed_size_sampled(100, 7).unwrap(), format!("07{}{}01{one}", number(100), number(7))),
            (DpEvent::Composed(vec![DpEvent::NonPrivate, gaussian.clone()]), format!("08{}0001{one}", number(2))),
            (gaussian.clone().repeated(300), format!("09{}01{one}", number(300))),
            (DpEvent::OneOf(vec![sampled]), format!("0a{}06{half}01{one}", number(1))),
            (
                gaussian.clone().best_of(TrialCount::negative_binomial(1.0, 0.5).unwrap()),
                format!("0b00{one}{half}01{one}"),
            ),
            (gaussian.best_of(TrialCount::poisson(2.0).unwrap()), format!("0b01{two}01{one}")),
            (
                DpEvent::EpsilonDelta { epsilon: Epsilon::new(1.0).unwrap(), delta: Delta::new(0.5).unwrap() },
                format!("0c{one}{half}"),
            ),
            (
                DpEvent::BandedMatrixFactorisation(
                    BandedMatrixFactorisation::new(
                        NoiseMultiplier::new(1.0).unwrap(),
                        SamplingRate::new(0.5).unwrap(),
                        4,
                        9,
                    )
                    .unwrap(),
                ),
                format!("0d{one}{half}{}{}", number(4), number(9)),
            ),
            (
                DpEvent::TreeAggregation(TreeAggregation::new(NoiseMultiplier::new(1.0).unwrap(), 8).unwrap()),
                format!("0e{one}{}{}{}", number(8), number(1), number(1)),
            ),
            (
                DpEvent::TreeAggregation(
                    TreeAggregation::new(NoiseMultiplier::new(1.0).unwrap(), 5).unwrap().with_incomplete_nodes(),
                ),
                format!("14{one}{}{}{}", number(5), number(1), number(1)),
            ),
            (
                DpEvent::MixtureOfGaussians(
                    MixtureOfGaussians::new(NoiseMultiplier::new(1.0).unwrap(), [1.0, 2.0], [0.5, 0.5]).unwrap(),
                ),
                format!("0f{one}{}{one}{two}{half}{half}", number(2)),
            ),
            (
                DpEvent::DiscreteLaplace { scale: NoiseMultiplier::new(2.0).unwrap(), sensitivity: 3 },
                format!("10{two}{}", number(3)),
            ),
            (
                DpEvent::DiscreteGaussian { sigma: NoiseMultiplier::new(2.0).unwrap(), sensitivity: 3 },
                format!("11{two}{}", number(3)),
            ),
            (
                DpEvent::TruncatedPoissonGaussian {
                    noise_multiplier: NoiseMultiplier::new(1.0).unwrap(),
                    sampling_rate: SamplingRate::new(0.5).unwrap(),
                    n_records: 10,
                    max_batch_size: 7,
                },
                format!("12{one}{half}{}{}", number(10), number(7)),
            ),
            (
                DpEvent::RandomAllocation {
                    noise_multiplier: NoiseMultiplier::new(1.0).unwrap(),
                    steps: 9,
                    participations: 2,
                },
                format!("13{one}{}{}", number(9), number(2)),
            ),
        ];
        for (event, expected) in cases {
            assert_eq!(hexadecimal(&event), expected, "{event}");
        }
    }
}
