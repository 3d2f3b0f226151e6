//! The tests of the pages in `docs/`, which are an mdBook, of the READMEs and of CONTRIBUTING.
//!
//! `tests/pages.rs` follows every link, compares `SUMMARY.md` with the pages that there are, and
//! sees that each page with Rust examples is among the doctests of the crate that it is about.
