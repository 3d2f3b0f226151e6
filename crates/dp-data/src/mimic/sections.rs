//! Removes the sections of a discharge summary that tell how the stay ended.

/// Sections whose header speaks of home or discharge are left out, header included; everything else
/// stays, in order.
///
/// A header is the beginning of a line up to a colon: at most 60 letters, blanks, slashes, hyphens,
/// brackets or ampersands. A section goes on to the next header.
pub(super) fn without_outcome(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut leave_out = false;
    for line in text.lines() {
        if let Some(header) = header(line) {
            let header = header.to_ascii_lowercase();
            leave_out = header.contains("discharge") || header.contains("home");
        }
        if !leave_out {
            kept.push_str(line.trim_end());
            kept.push('\n');
        }
    }
    kept
}

fn header(line: &str) -> Option<&str> {
    let (header, _) = line.split_once(':')?;
    let allowed = |c: char| c.is_ascii_alphabetic() || " /-()&".contains(c);
    let plausible =
        header.len() <= 60 && header.starts_with(|c: char| c.is_ascii_alphabetic()) && header.chars().all(allowed);
    plausible.then_some(header)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        let note = "Admission Date:  [**2131-5-7**]   Discharge Date: [**2131-5-8**]\nService: MEDICINE\nHistory of Present \
                    Illness:\nSent home: twice.\nat 10:30 pain.\nMedications on Discharge:\n1. Aspirin\nDischarge \
                    Disposition:\nHome\nAllergies:\nnone\n";
        assert_eq!(
            without_outcome(note),
            "Admission Date:  [**2131-5-7**]   Discharge Date: [**2131-5-8**]\nService: MEDICINE\nHistory of Present \
             Illness:\nAllergies:\nnone\n"
        );
    }

    proptest! {
        #[test]
        fn never_adds_anything(text in "(?s).{0,200}") {
            prop_assert!(without_outcome(&text).len() <= text.len() + 1);
        }
    }
}
