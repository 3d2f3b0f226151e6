//! Monotone regression.

/// The rising sequence that is nearest to the values: pools of neighbours that fall.
///
/// **Source.** Pool adjacent violators: Ayer et al. 1955.
pub(crate) fn rising(values: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(values.len());
    for &value in values {
        pools.push((value, 1));
        while let [.., (a, n), (b, m)] = pools[..]
            && a > b
        {
            pools.truncate(pools.len() - 2);
            pools.push(((a * n as f64 + b * m as f64) / (n + m) as f64, n + m));
        }
    }
    pools.into_iter().flat_map(|(value, n)| std::iter::repeat_n(value, n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_neighbours_have_their_mean() {
        assert_eq!(rising(&[1.0, 3.0, 2.0, 4.0, 3.0, 2.0, 9.0]), [1.0, 2.5, 2.5, 3.0, 3.0, 3.0, 9.0]);
        assert_eq!(rising(&[]), [0.0; 0]);
    }
}
