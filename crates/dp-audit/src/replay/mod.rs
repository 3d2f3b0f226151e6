//! An audit of the sensitivity that a step declares, in the arithmetic that is executed.
//!
//! The proof of DP-SGD rests on one sentence: if one record changes, the sum that meets the noise
//! changes by at most its bound `S`, and each count by at most its declared sensitivity. [`Replay`]
//! attacks it by numbers. It takes the steps of neighbours, with the very code of
//! [`Trainer::step`](dp_train::Trainer::step), stops before the noise and compares: a record is there,
//! blanked, or not drawn, and all that was released before is the same.
//!
//! ```
//! use std::num::NonZeroUsize;
//! use dp_audit::replay::Replay;
//! use dp_train::Device;
//! let (one, device, method) = (NonZeroUsize::MIN, Device::Cpu, Some("dpsgd".into()));
//! let replay = Replay { cases: 40, seed: 1, method, layer: None, plant: None, threads: one, ranks: one, device };
//! let report = replay.run(&|_| {})?;
//! assert_eq!(report.cases, 40);
//! # Ok::<(), dp_train::TrainError>(())
//! ```
//!
//! [`Neighbours`] compares steps of your own. For other attacks,
//! [`Trainer::before_noise`](dp_train::Trainer::before_noise) takes a step on a batch of your choice,
//! and [`Trainer::draw_batch`](dp_train::Trainer::draw_batch) says which one the trainer would draw.
//!
//! The outputs of this module are not private, and it can plant faults.

mod attack;
mod case;
mod layer_kind;
mod measure;
mod past_breaches;
mod search;

pub use self::attack::Attack;
pub use self::layer_kind::LayerKind;
pub use self::measure::{Breach, Comparison, Neighbours};
pub use self::past_breaches::{CAUSES, PAST_BREACHES, PastBreach};
pub use self::search::{Replay, Report, Violation, replay_layer};
