//! What the experiments of Zhao et al. 2025 have in common (settings: 4.1, A.3, A.4).

use dp_accounting::{Delta, Epsilon};
use dp_clipping::PresetParams;
use dp_train::{LearningRate, Loss, ModelConfig};

use super::data_setting::DataSetting;
use super::experiment::{BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise};
use crate::report::landscape::{BOUND, RATE};

/// The grid of A.4: ten rates from 1 to 10 and twenty bounds from 0.001 to 50, evenly spaced in the logarithm, as printed.
pub(crate) const RATES: [f64; 10] = [1.0, 1.2915, 1.6681, 2.1544, 2.7826, 3.5938, 4.6416, 5.9948, 7.7426, 10.0];
pub(crate) const BOUNDS: [f64; 20] = [
    0.001, 0.0018, 0.0031, 0.0055, 0.0098, 0.0172, 0.0305, 0.0539, 0.0952, 0.1682, 0.2973, 0.5254, 0.9285, 1.6409, 2.9,
    5.1252, 9.0579, 16.0082, 28.2915, 50.0,
];

/// The three strategies that the paper compares, by their registry names.
pub(crate) const STRATEGIES: [&str; 3] = ["bounded-adaptive", "dpsgd-normalised", "unbounded-adaptive"];

/// What differs between the data sets.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) data: DataSetting,
    pub(crate) model: ModelConfig,
    pub(crate) loss: Loss,
    pub(crate) batch_size: BatchSize,
    pub(crate) epochs: u64,
    pub(crate) seeds: u32,
}

/// An experiment with these methods.
pub(crate) fn experiment(
    setting: Setting,
    methods: Vec<MethodSetting>,
    departures: Vec<String>,
) -> anyhow::Result<Experiment> {
    let mut all_departures = vec![
        "Noise multipliers are calibrated by our RDP accountant (improved conversion, every order), which needs a little less noise \
         than Opacus."
            .to_owned(),
        "Sums and counts are divided by the expected batch size, never by the realised one, which is private.".to_owned(),
        "The paper calls the normalised rule with a constant bound constant clipping; its name here is dpsgd-normalised.".to_owned(),
    ];
    all_departures.extend(departures);
    Ok(Experiment {
        id: setting.id,
        title: setting.title,
        departures: all_departures,
        data: setting.data,
        seeds: setting.seeds,
        model: setting.model,
        loss: setting.loss.clone(),
        batch_size: setting.batch_size,
        epochs: setting.epochs,
        counting: BatchCounting::LoaderLength,
        l2: 0.0,
        // Every method states its own ε.
        noise: Noise::Within(Epsilon::new(1.0)?),
        delta: Delta::new(1e-5)?,
        matches_dpsgd_budget: false,
        methods,
        published: None,
    })
}

/// A strategy at a point of the grid. `bound` is `C` of constant clipping and the lower bound of bounded adaptive clipping.
pub(crate) fn strategy(name: &'static str, rate: f64, bound: Option<f64>) -> MethodSetting {
    let mut params = PresetParams { clip_norm: 1.0, ..PresetParams::default() };
    match bound {
        Some(bound) if name == "dpsgd-normalised" => params.clip_norm = bound,
        bound => params.lower_bound = bound,
    }
    MethodSetting::new(name, LearningRate::Constant(rate), params)
}

/// The reference without privacy, at this rate. The paper has none.
pub(crate) fn reference(rate: f64) -> MethodSetting {
    MethodSetting::new(NON_PRIVATE, LearningRate::Constant(rate), PresetParams::default())
}

/// Every strategy at every `stride`-th point of the grid, within this ε. Unbounded adaptive clipping has no bound to vary.
pub(crate) fn grid(epsilon: f64, (rate_stride, bound_stride): (usize, usize)) -> anyhow::Result<Vec<MethodSetting>> {
    let mut methods = Vec::new();
    for name in STRATEGIES {
        for &rate in RATES.iter().step_by(rate_stride) {
            let bounds: Vec<Option<f64>> = if name == "unbounded-adaptive" {
                vec![None]
            } else {
                BOUNDS.iter().step_by(bound_stride).copied().map(Some).collect()
            };
            for bound in bounds {
                let point = strategy(name, rate, bound).within(epsilon)?.at(RATE, rate);
                methods.push(match bound {
                    Some(bound) => point.at(BOUND, bound),
                    None => point,
                });
            }
        }
    }
    Ok(methods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_that_of_the_paper() {
        let methods = grid(0.5, (1, 1)).unwrap();
        assert_eq!(methods.len(), 200 + 200 + 10);
        assert_eq!(methods[0].id, "bounded-adaptive ε=0.5, rate=1, bound=0.001");
        assert_eq!(methods[0].params.lower_bound, Some(0.001));
        assert_eq!(methods[200].params.clip_norm, 0.001);
        assert_eq!(methods[409].id, "unbounded-adaptive ε=0.5, rate=10");
        // Evenly spaced in the logarithm, to the digits printed.
        for (points, first, last) in [(&RATES[..], 1.0_f64, 10.0_f64), (&BOUNDS[..], 1e-3, 50.0)] {
            let n = points.len() - 1;
            for (index, point) in points.iter().enumerate() {
                let exact = first * (last / first).powf(index as f64 / n as f64);
                assert!((point - exact).abs() <= 6e-5, "{point} {exact}");
            }
        }
    }
}
