//! Values that must be the same on all ranks, and the errors about differences.
//!
//! An error of one rank never shows the bytes that another one sent. Where ranks are at different
//! places of a run, these bytes are whatever the other place sends: losses and norms without noise,
//! a checkpoint with its key. Digests are compared, and only what is public anyway is named.

use serde_json::{Value, json};

use dp_engine::EngineError;

use super::Collective;
use crate::checkpoint::difference;
use crate::error::{Result, TrainError};

/// An error unless all ranks gave the same value, which is public: every field that differs is
/// named, with the values of both ranks.
///
/// # Errors
/// [`TrainError::Differences`] between rank 0 and the first rank that differs from it;
/// [`TrainError::Ranks`] if a rank is about to do something else.
pub(crate) fn agree_on(ranks: &dyn Collective, what: &str, value: &Value) -> Result<()> {
    if ranks.size() == 1 {
        return Ok(());
    }
    let message = json!({ "agree on": what, "value": value });
    let mut values = Vec::new();
    for (rank, message) in ranks.gather(message.to_string().into_bytes())?.iter().enumerate() {
        match serde_json::from_slice::<Value>(message) {
            Ok(mut message) if message["agree on"] == what => values.push(message["value"].take()),
            _ => return Err(EngineError::elsewhere(what, rank).into()),
        }
    }
    match values.iter().position(|value| *value != values[0]) {
        None => Ok(()),
        Some(rank) => {
            let (first, other) = ("on rank 0", format!("on rank {rank}"));
            let differences = difference::between(what, (&values[0], first), (&values[rank], &other));
            Err(TrainError::Differences { what: format!("rank {rank} differs from rank 0"), differences })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::on_threads;

    /// Losses of another rank, as its step sends them.
    const LOSSES: &[u8] = b"0.51423 raw loss of one record";

    #[test]
    fn what_another_rank_sent_is_never_shown() {
        let errors = on_threads(2, |ranks| {
            let error = if ranks.rank() == 1 {
                let received = ranks.gather(LOSSES.to_vec())?;
                assert!(received[0].len() == 64, "digests");
                agree_on(&*ranks, "plan", &json!({"a": 1})).unwrap_err()
            } else {
                let error = ranks.agree("parameters", b"secret").unwrap_err();
                ranks.gather(LOSSES.to_vec())?;
                error.into()
            };
            Ok(error.to_string())
        })
        .unwrap();
        assert_eq!(
            errors,
            [
                "ranks: parameters: rank 1 is at another place of its run",
                "ranks: plan: rank 0 is at another place of its run"
            ]
        );
    }

    #[test]
    fn the_same_value_for_another_purpose_is_no_agreement() {
        let errors = on_threads(2, |ranks| {
            let what = ["one", "two"][ranks.rank()];
            let error = ranks.agree(what, b"x").unwrap_err();
            let other = agree_on(&*ranks, what, &json!("x")).unwrap_err();
            Ok([error.to_string(), other.to_string()])
        })
        .unwrap();
        assert_eq!(errors[0], ["ranks: one: rank 1 is at another place of its run"; 2]);
        assert_eq!(errors[1], ["ranks: two: rank 0 is at another place of its run"; 2]);
    }

    #[test]
    fn public_fields_that_differ_are_named() {
        let errors = on_threads(3, |ranks| {
            let version = if ranks.rank() == 2 { 4 } else { 3 };
            let value = json!({"numerics": version, "processor": "x86_64"});
            Ok(agree_on(&*ranks, "program", &value).unwrap_err().to_string())
        });
        let expected = "rank 2 differs from rank 0: program.numerics: 3 on rank 0, 4 on rank 2";
        assert_eq!(errors.unwrap(), [expected; 3]);
    }
}
