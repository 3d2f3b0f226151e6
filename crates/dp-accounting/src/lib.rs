//! Exact privacy accounting for differentially private training.
