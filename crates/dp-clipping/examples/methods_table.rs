//! Prints the table of all methods; `METHODS.md` of this crate is its output.

pub(crate) fn main() {
    print!("{}", dp_clipping::registry::markdown());
}
