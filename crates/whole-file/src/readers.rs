/// Who may read a file, on Unix. Elsewhere the rights of its folder decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone, from the moment that it exists (mode 0600).
    Owner,
    /// The readers of the file that is replaced, or of a new file by default.
    Default,
}
