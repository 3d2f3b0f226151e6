//! Values as words of 64 bits, as ranks exchange them.

use candle_core::{Result, Tensor};

use super::element::{cpu, destination, dtype, for_float, same, source};
use super::in_place::unary;

/// Appends the values of a tensor on the CPU, as they lie in memory; the last word may be half
/// empty.
pub(crate) fn append_words(values: &Tensor, to: &mut Vec<u64>) -> Result<()> {
    let (storage, layout) = values.storage_and_layout();
    let storage = cpu(&storage)?;
    for_float!(dtype(storage), "append-words", T => {
        let values = source::<T>((storage, layout))?;
        let start = to.len();
        to.resize(start + words_of::<T>(values.len()), 0);
        bytemuck::cast_slice_mut::<u64, T>(&mut to[start..])[..values.len()].copy_from_slice(values);
        Ok(())
    })
}

/// Overwrites a tensor on the CPU with values that [`append_words`] wrote; returns the words behind
/// them.
pub(crate) fn take_words<'w>(out: &Tensor, words: &'w [u64]) -> Result<&'w [u64]> {
    let mut rest = words;
    unary("take-words", out, |operands| {
        let (out, []) = operands.on_cpu("take-words")?;
        for_float!(dtype(out.0), "take-words", T => {
            let out = destination::<T>(out)?;
            let (own, after) = words.split_at(words_of::<T>(out.len()).min(words.len()));
            out.copy_from_slice(values::<T>(own, out.len())?);
            rest = after;
            Ok(())
        })
    })?;
    Ok(rest)
}

/// The `n_values` values that [`append_words`] wrote.
pub(super) fn values<T: bytemuck::Pod>(words: &[u64], n_values: usize) -> Result<&[T]> {
    same("words of values", words_of::<T>(n_values), words.len())?;
    Ok(&bytemuck::cast_slice(words)[..n_values])
}

fn words_of<T>(n_values: usize) -> usize {
    (n_values * size_of::<T>()).div_ceil(size_of::<u64>())
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    #[test]
    fn values_come_back_as_they_were() {
        for dtype in [DType::F32, DType::F64] {
            let values = Tensor::new(&[1.5_f64, -0.0, f64::NAN], &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
            let mut words = vec![7];
            append_words(&values, &mut words).unwrap();
            let copy = values.zeros_like().unwrap();
            assert_eq!(take_words(&copy, &[&words[1..], &[8]].concat()).unwrap(), [8]);
            let bits = |tensor: &Tensor| -> Vec<u64> {
                tensor.to_dtype(DType::F64).unwrap().to_vec1::<f64>().unwrap().iter().map(|x| x.to_bits()).collect()
            };
            assert_eq!(bits(&copy), bits(&values));
            let error = take_words(&copy, &words[..1]).unwrap_err().to_string();
            assert!(error.starts_with("words of values: expected"), "{error}");
        }
    }
}
