//! Per-sample gradient clipping: scale rules, threshold controllers and sample weights.
