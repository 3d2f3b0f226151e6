//! Why figures of a study are not comparable with a paper's.

/// Why figures are not comparable; printed on every table and plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Generated records.
    pub synthetic: bool,
    /// Fewer epochs or seeds than the paper.
    pub quick: bool,
}

impl Mark {
    /// `None` if neither applies.
    pub fn new(synthetic: bool, quick: bool) -> Option<Self> {
        (synthetic || quick).then_some(Self { synthetic, quick })
    }

    /// The mark as it is printed.
    pub fn label(self) -> &'static str {
        match (self.synthetic, self.quick) {
            (true, true) => "SYNTHETIC, QUICK",
            (true, false) => "SYNTHETIC",
            (false, _) => "QUICK",
        }
    }

    /// What the mark means.
    pub fn meaning(self) -> &'static str {
        match (self.synthetic, self.quick) {
            (true, true) => {
                "Generated records and a shortened run: the figures show that the software works and say nothing about \
                 the paper. No verdict is given."
            }
            (true, false) => {
                "Generated records: the figures show that the software works and say nothing about the paper. No verdict \
                 is given."
            }
            (false, _) => {
                "A shortened run with fewer epochs or seeds than the paper: the figures are not comparable and no verdict \
                 is given."
            }
        }
    }
}

/// Prefixes a caption with the mark, if there is one.
pub fn marked(mark: Option<Mark>, caption: &str) -> String {
    mark.map_or_else(|| caption.to_owned(), |mark| format!("{}: {caption}", mark.label()))
}
