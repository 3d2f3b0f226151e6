//! The attribute and partition lists of CelebA, in the published and in the Kaggle format.

use std::path::Path;

use crate::error::{DataError, Position};

/// The official part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subset {
    /// About 80 %.
    Train,
    /// About 10 %.
    Validation,
    /// About 10 %.
    Test,
}

/// The text of a list and its path, for errors.
#[derive(Clone, Copy)]
pub(super) struct ListFile<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

/// One image of the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedImage {
    pub(super) file: String,
    pub(super) male: bool,
    pub(super) eyeglasses: bool,
    pub(super) part: Subset,
}

/// Joins both lists, which must name the same files in the same order.
///
/// The published attribute list begins with the number of images and a line of names; the Kaggle
/// list is CSV whose first line is the names behind `image_id`. The partition list has no header in
/// the published form, and one in the Kaggle form.
///
/// **Errors.** [`DataError::EmptyFile`], [`DataError::MissingColumn`], [`DataError::WrongArity`],
/// [`DataError::UnknownCategory`],
/// [`DataError::Malformed`]: each with file and line.
pub(super) fn join(attributes: ListFile<'_>, partition: ListFile<'_>) -> Result<Vec<ListedImage>, DataError> {
    let mut parts = lines(partition).filter(|(fields, _)| fields[0] != "image_id");
    let mut rows = lines(attributes);
    let mut header = rows.next().ok_or_else(|| DataError::EmptyFile { path: attributes.path.into() })?;
    let mut stated = None;
    if let ([count], at) = (&header.0[..], header.1) {
        stated = Some(count.parse::<usize>().map_err(|_| at.malformed("expected the number of images"))?);
        header = rows.next().ok_or_else(|| DataError::EmptyFile { path: attributes.path.into() })?;
    }
    let (names, at) = header;
    // The published header does not name the first column.
    let offset = usize::from(names[0] != "image_id");
    let column = |name: &str| {
        names.iter().position(|&field| field == name).map(|index| index + offset).ok_or_else(|| at.missing_column(name))
    };
    let (male, eyeglasses) = (column("Male")?, column("Eyeglasses")?);
    let mut listed = Vec::new();
    for (fields, at) in rows {
        if fields.len() != names.len() + offset {
            return Err(at.wrong_arity(fields.len(), names.len() + offset));
        }
        let file = plain_file_name(fields[0], at)?;
        let (part, part_at) =
            parts.next().ok_or_else(|| DataError::NotListed { path: partition.path.into(), entry: file.clone() })?;
        if part.len() != 2 {
            return Err(part_at.wrong_arity(part.len(), 2));
        }
        if part[0] != file {
            return Err(part_at.malformed(format!("expected `{file}`, as in the attribute list")));
        }
        let part = match part[1] {
            "0" => Subset::Train,
            "1" => Subset::Validation,
            "2" => Subset::Test,
            other => return Err(part_at.unknown_category("partition", other, &["0", "1", "2"])),
        };
        let is = |column: usize, name: &str| match fields[column] {
            "1" => Ok(true),
            "-1" => Ok(false),
            other => Err(at.unknown_category(name, other, &["-1", "1"])),
        };
        listed.push(ListedImage { file, male: is(male, "Male")?, eyeglasses: is(eyeglasses, "Eyeglasses")?, part });
    }
    if listed.is_empty() {
        return Err(DataError::EmptyFile { path: attributes.path.into() });
    }
    if let Some(stated) = stated.filter(|&stated| stated != listed.len()) {
        let at = Position { path: attributes.path, line: 1 };
        return Err(at.malformed(format!("{stated} images stated, {} listed", listed.len())));
    }
    if let Some((fields, at)) = parts.next() {
        return Err(at.malformed(format!("`{}` is not in the attribute list", fields[0])));
    }
    Ok(listed)
}

/// Fields of every line that is not empty, separated by blanks or commas.
fn lines(file: ListFile<'_>) -> impl Iterator<Item = (Vec<&str>, Position<'_>)> {
    let ListFile { text, path } = file;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fields: Vec<&str> =
            line.split(|c: char| c == ',' || c.is_whitespace()).filter(|field| !field.is_empty()).collect();
        (!fields.is_empty()).then_some((fields, Position { path, line: index + 1 }))
    })
}

/// A list must not lead out of the folder of images.
fn plain_file_name(name: &str, at: Position<'_>) -> Result<String, DataError> {
    if name.contains(['/', '\\']) || name.starts_with('.') {
        return Err(at.malformed("not a plain file name"));
    }
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PUBLISHED: &str = "2\nEyeglasses Male Young \n000001.jpg -1  1  1\n000002.jpg  1 -1 -1\n";
    const PARTITION: &str = "000001.jpg 0\n000002.jpg 2\n";

    fn read(attributes: &str, partition: &str) -> Result<Vec<ListedImage>, DataError> {
        let file = |text, path| ListFile { text, path: Path::new(path) };
        join(file(attributes, "attr.txt"), file(partition, "part.txt"))
    }

    #[test]
    fn both_formats_say_the_same() {
        let listed = read(PUBLISHED, PARTITION).unwrap();
        assert_eq!(
            listed,
            [
                ListedImage { file: "000001.jpg".into(), male: true, eyeglasses: false, part: Subset::Train },
                ListedImage { file: "000002.jpg".into(), male: false, eyeglasses: true, part: Subset::Test },
            ]
        );
        let kaggle = "image_id,Eyeglasses,Male,Young\n000001.jpg,-1,1,1\n000002.jpg,1,-1,-1\n";
        assert_eq!(read(kaggle, "image_id,partition\n000001.jpg,0\n000002.jpg,2\n").unwrap(), listed);
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |attributes: &str, partition: &str| read(attributes, partition).unwrap_err().to_string();
        insta::assert_snapshot!(error("", PARTITION), @"`attr.txt` has no records");
        insta::assert_snapshot!(error("many\n", PARTITION), @"attr.txt:1: expected the number of images");
        insta::assert_snapshot!(
            error(&PUBLISHED.replace("Male", "Sex"), PARTITION),
            @"attr.txt:2: column `Male` is missing from the header"
        );
        insta::assert_snapshot!(error(&PUBLISHED.replace(" -1 -1", " -1"), PARTITION), @"attr.txt:4: 3 fields, expected 4");
        insta::assert_snapshot!(
            error(&PUBLISHED.replace(" -1  1", " -1  0"), PARTITION),
            @"attr.txt:3: column `Male`: `0` is not one of -1, 1"
        );
        insta::assert_snapshot!(error(&PUBLISHED.replacen('2', "3", 1), PARTITION), @"attr.txt:1: 3 images stated, 2 listed");
        insta::assert_snapshot!(
            error(&PUBLISHED.replace("000001", "../1"), PARTITION),
            @"attr.txt:3: not a plain file name"
        );
        insta::assert_snapshot!(
            error(PUBLISHED, &PARTITION.replace(" 2", " 3")),
            @"part.txt:2: column `partition`: `3` is not one of 0, 1, 2"
        );
        insta::assert_snapshot!(
            error(PUBLISHED, &PARTITION.replace("000002", "000003")),
            @"part.txt:2: expected `000002.jpg`, as in the attribute list"
        );
        insta::assert_snapshot!(error(PUBLISHED, "000001.jpg 0\n"), @"`part.txt` does not list `000002.jpg`");
        insta::assert_snapshot!(
            error(PUBLISHED, &format!("{PARTITION}000003.jpg 1\n")),
            @"part.txt:3: `000003.jpg` is not in the attribute list"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(attributes in "(?s).{0,200}", partition in "(?s).{0,100}") {
            let _ = read(&attributes, &partition);
            let _ = read(&format!("{PUBLISHED}{attributes}"), &format!("{PARTITION}{partition}"));
        }
    }
}
