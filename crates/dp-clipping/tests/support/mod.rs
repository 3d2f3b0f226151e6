//! Strategies: any combination of rule, controller and weights, any norm.

mod own_parts;

use dp_clipping::{
    Bits, ClipConfig, Controller, CountNoise, Counted, OwnBound, PresetParams, ScaleRule, ShareOf, Weights, registry,
};
use proptest::prelude::*;

/// Parameters over many orders of magnitude.
fn magnitude() -> impl Strategy<Value = f64> {
    (-9.0..9.0).prop_map(|exponent: f64| 10_f64.powf(exponent))
}

fn count_noise() -> impl Strategy<Value = CountNoise> {
    prop_oneof![(0.0..50.0).prop_map(CountNoise::Multiplier), (0.0..20.0).prop_map(CountNoise::TimesGradient),]
}

/// A rule from outside of the crate that is wrong.
fn own_rule() -> impl Strategy<Value = ScaleRule> {
    let bound = prop_oneof![Just(OwnBound::Threshold), magnitude().prop_map(OwnBound::Constant)];
    (0_u8..5, bound).prop_map(|(how, declared)| match own_parts::wrong(how) {
        ScaleRule::Own { rule, .. } => ScaleRule::Own { rule, bound: declared },
        other => other,
    })
}

/// The controller from outside of the crate, which is wrong.
fn own_controller() -> impl Strategy<Value = Controller> {
    let wrong = own_parts::all_wrong_entry().default_config().controller;
    (magnitude(), count_noise()).prop_map(move |(first, noise)| match wrong {
        Controller::Own { controller, .. } => Controller::Own { controller, initial: first, count_noise: noise },
        other => other,
    })
}

/// The weights from outside of the crate, which are wrong.
fn own_weights() -> impl Strategy<Value = Weights> {
    let wrong = own_parts::all_wrong_entry().default_config().weights;
    count_noise().prop_map(move |noise| match wrong {
        Weights::Own { weights, .. } => Weights::Own { weights, count_noise: noise },
        other => other,
    })
}

fn rule() -> impl Strategy<Value = ScaleRule> {
    prop_oneof![
        own_rule(),
        Just(ScaleRule::Hard),
        Just(ScaleRule::Normalised),
        Just(ScaleRule::Tanh),
        magnitude().prop_map(|clip_norm| ScaleRule::GlobalDrop { clip_norm }),
        magnitude().prop_map(|clip_norm| ScaleRule::GlobalClip { clip_norm }),
        magnitude().prop_map(|clip_norm| ScaleRule::GlobalTanh { clip_norm }),
        prop_oneof![Just(0.0), magnitude()].prop_map(|stability| ScaleRule::Automatic { stability }),
    ]
}

fn controller() -> impl Strategy<Value = Controller> {
    let geometric = (
        (magnitude(), 0.0..1.0, prop_oneof![Just(1.0), 0.0..5.0], prop_oneof![Just(0.2), 0.0..100.0]),
        (prop_oneof![Just(0.0), magnitude()], any::<bool>(), any::<bool>(), count_noise()),
    )
        .prop_map(|((initial, target, tolerance, rate), (lower_bound, above, raw, count_noise))| {
            Controller::Geometric {
                initial,
                target,
                tolerance,
                rate,
                lower_bound,
                counted: if above { Counted::Above } else { Counted::Within },
                bits: if raw { Bits::Raw } else { Bits::Centred },
                count_noise,
            }
        });
    prop_oneof![
        magnitude().prop_map(|threshold| Controller::Constant { threshold }),
        magnitude().prop_map(|threshold| Controller::ByRate { threshold }),
        own_controller(),
        geometric,
        (magnitude(), any::<bool>(), count_noise()).prop_map(|(base, of_groups, count_noise)| {
            let share_of = if of_groups { ShareOf::Groups } else { ShareOf::Batch };
            Controller::PerGroup { base, share_of, count_noise }
        }),
    ]
}

fn weights() -> impl Strategy<Value = Weights> {
    prop_oneof![
        Just(Weights::Uniform),
        own_weights(),
        count_noise().prop_map(|count_noise| Weights::Naive { count_noise }),
        (prop_oneof![Just(0.1), 0.0..100.0], magnitude(), count_noise(), any::<bool>()).prop_map(
            |(rate, loss_bound, count_noise, of_rates)| {
                if of_rates {
                    Weights::RatesByLoss { rate, loss_bound, count_noise }
                } else {
                    Weights::Multiplicative { rate, loss_bound, count_noise }
                }
            },
        ),
    ]
}

/// A registered method under random settings, or a random combination.
pub(crate) fn config() -> impl Strategy<Value = ClipConfig> {
    let named = (0..registry::methods().len(), magnitude(), proptest::option::of(magnitude())).prop_map(
        |(index, clip_norm, upper_bound)| {
            (registry::methods()[index].preset)(&PresetParams { clip_norm, upper_bound, ..PresetParams::default() })
        },
    );
    let any_cell = (rule(), controller(), weights())
        .prop_map(|(rule, controller, weights)| ClipConfig::new(rule, controller, weights));
    prop_oneof![named, any_cell]
}

/// Ordinary norms, and those that break naive formulas.
pub(crate) fn norm() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => magnitude(),
        2 => any::<f64>(),
        2 => prop::sample::select(vec![
            0.0,
            -0.0,
            5e-324,
            f64::MIN_POSITIVE,
            1e-40,
            1e-6,
            1.0,
            1.0 + f64::EPSILON,
            1e38,
            1e300,
            f64::MAX,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            -1.0,
        ]),
    ]
}
