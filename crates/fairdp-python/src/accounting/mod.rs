//! `fairdp.accounting`.

mod accountants;
mod bounds;
mod calibration;
mod case;
mod events;
mod groups;
mod ledger;
mod statement;
mod trade_off;
mod trials;

pub(crate) use events::DpEvent;

use pyo3::prelude::*;

#[pymodule]
pub(crate) mod accounting {
    #[pymodule_export]
    use super::accountants::Accountant;
    #[pymodule_export]
    use super::bounds::{AttackBound, DeltaBound, EpsilonBound};
    #[pymodule_export]
    use super::calibration::{Calibration, analytic_gaussian_noise_multiplier};
    #[pymodule_export]
    use super::case::{Answered, answer, answer_lines};
    #[pymodule_export]
    use super::events::DpEvent;
    #[pymodule_export]
    use super::groups::GroupAccounting;
    #[pymodule_export]
    use super::ledger::Ledger;
    #[pymodule_export]
    use super::statement::Statement;
    #[pymodule_export]
    use super::trade_off::TradeOff;
    #[pymodule_export]
    use super::trials::TrialCount;
}
