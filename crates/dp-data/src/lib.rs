//! Verified loaders and encoders for the data sets of fair private training.
