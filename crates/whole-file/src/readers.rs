/// Who may read a file, on Unix. Elsewhere the rights of its folder decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone, from the moment that it exists (mode 0600).
    Owner,
    /// Whoever may read the file that is replaced, or whom the system lets by default.
    Default,
}
