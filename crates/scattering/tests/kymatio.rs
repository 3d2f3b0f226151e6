//! The scattering transform against Kymatio's values.

use std::num::NonZeroUsize;

use scattering::{ImageSize, Scattering, ScatteringConfig};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    height: usize,
    width: usize,
    channels: usize,
    log2_scale: usize,
    angles: usize,
    order: usize,
    shape: [usize; 3],
    sum: f64,
    square_sum: f64,
    indices: Vec<usize>,
    values: Vec<f64>,
}

/// One and three channels, odd and even sizes, odd numbers of angles, one to three scales.
///
/// Kymatio adds up its wavelets in single precision, which is an error of a few 1e-7 of the largest
/// value; so is ours.
#[test]
fn values_are_kymatios() {
    let golden: Golden = serde_json::from_str(include_str!("golden/scattering.json")).unwrap();
    for case in golden.cases {
        let Case { height, width, channels, log2_scale, angles, order, .. } = case;
        let image = ImageSize { height, width, channels };
        let scattering = Scattering::new(ScatteringConfig { log2_scale, angles, order }, image).unwrap();
        let pixels: Vec<f32> = (0..image.len() as u64).map(|i| ((31 * i * i + 17 * i) % 257) as f32 / 256.0).collect();
        let got = scattering.transform(&pixels, NonZeroUsize::MIN).unwrap();
        let output = scattering.output();
        assert_eq!([output.height, output.width, output.channels], case.shape);
        for (&i, &expected) in case.indices.iter().zip(&case.values) {
            let got = f64::from(got[i]);
            assert!((got - expected).abs() < 2e-6, "{image:?}, value {i}: {got} for {expected}");
        }
        let sum: f64 = got.iter().map(|&v| f64::from(v)).sum();
        let square_sum: f64 = got.iter().map(|&v| f64::from(v).powi(2)).sum();
        assert!((sum / case.sum - 1.0).abs() < 2e-6, "{sum} for {}", case.sum);
        assert!((square_sum / case.square_sum - 1.0).abs() < 2e-6, "{square_sum} for {}", case.square_sum);
    }
}
