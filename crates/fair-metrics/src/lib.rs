//! Group fairness metrics and their statistics.
