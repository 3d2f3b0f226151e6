//! Differentially private training on candle without an autograd tape.
