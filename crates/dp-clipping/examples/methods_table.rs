//! Prints the table of all methods; `METHODS.md` of this crate is its output.

fn main() {
    print!("{}", dp_clipping::registry::markdown());
}
