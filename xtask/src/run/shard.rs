//! A part of a study's runs, for one of several machines.

use std::fmt;
use std::str::FromStr;

/// Part `part` of `of`, 1-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    part: usize,
    of: usize,
}

impl Shard {
    /// Whether this part has the run at this position of the study's list. Every run is in exactly
    /// one part, and the parts' sizes differ by one at most.
    pub(crate) fn has(self, position: usize) -> bool {
        position % self.of == self.part - 1
    }

    /// The part's number and how many there are, for a file name.
    pub(crate) fn suffix(self) -> String {
        format!("{}-of-{}", self.part, self.of)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refusal = || format!("shard `{text}`: expected I/N with 1 ≤ I ≤ N, for example 1/4");
        let (part, of) = text.split_once('/').ok_or_else(refusal)?;
        let (part, of) = (part.parse().map_err(|_| refusal())?, of.parse().map_err(|_| refusal())?);
        if (1..=of).contains(&part) { Ok(Self { part, of }) } else { Err(refusal()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_in_one_part() {
        let parts: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for position in 0..10 {
            assert_eq!(parts.iter().filter(|part| part.has(position)).count(), 1);
        }
        assert_eq!((0..10).filter(|&position| parts[0].has(position)).count(), 4);
        assert_eq!((parts[1].to_string(), parts[1].suffix()), ("2/3".to_owned(), "2-of-3".to_owned()));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "1", "0/3", "4/3", "1/0", "a/b", "-1/3"] {
            let error = text.parse::<Shard>().unwrap_err();
            assert_eq!(error, format!("shard `{text}`: expected I/N with 1 ≤ I ≤ N, for example 1/4"));
        }
    }
}
