//! How an encoded row is laid out in bytes.

use std::ops::Range;

/// The label of a row that was dropped.
pub(crate) const BLANK: u16 = u16::MAX;

/// More classes, groups or categories than this are refused.
pub(crate) const MOST_CODES: usize = u16::MAX as usize - 1;

/// The stored code of an input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Code {
    /// A position between knots, or missing.
    Position(Option<f32>),
    /// A category.
    Index(u16),
}

/// Offsets in the bytes of a row: label, group, unit, weight and a number to predict if there are any,
/// then the inputs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    unit: Option<usize>,
    weight: Option<usize>,
    target: Option<usize>,
    inputs: Vec<InputSlot>,
    stride: usize,
}

/// The place of an input in the bytes of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InputSlot {
    at: usize,
    width: Width,
}

impl InputSlot {
    /// A position between knots; `None` if it is missing.
    pub(crate) fn position(self, row: &[u8]) -> Option<f32> {
        let position = f32::from_le_bytes(bytes(row, self.at));
        (!position.is_nan()).then_some(position)
    }

    /// The index of a category.
    pub(crate) fn index(self, row: &[u8]) -> u32 {
        match self.width {
            Width::Two => u32::from(u16::from_le_bytes(bytes(row, self.at))),
            _ => u32::from(row[self.at]),
        }
    }

    /// The numbers of a vector; `None` if it is missing.
    pub(crate) fn vector(self, row: &[u8]) -> Option<impl Iterator<Item = f32>> {
        let (Width::Vector(length) | Width::Image(length)) = self.width else { return None };
        let numbers = row[self.at..self.at + 4 * length].as_chunks::<4>().0;
        let is_there = numbers.first().is_some_and(|first| !f32::from_le_bytes(*first).is_nan());
        is_there.then(|| numbers.iter().map(|number| f32::from_le_bytes(*number)))
    }
}

/// The stored size of an input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Width {
    /// A position in single precision.
    Single,
    /// An index below 256.
    Byte,
    /// A larger index.
    Two,
    /// This many numbers in single precision.
    Vector(usize),
    /// As many, and the digest of the image that they were made of.
    Image(usize),
}

/// Bytes of an image's digest.
const DIGEST: usize = 32;
const LABEL: Range<usize> = 0..2;
const GROUP: Range<usize> = 2..4;

impl Layout {
    pub(crate) fn new(
        has_unit: bool,
        has_weight: bool,
        has_target: bool,
        widths: impl IntoIterator<Item = Width>,
    ) -> Self {
        let mut stride = GROUP.end;
        let mut take = |bytes| {
            stride += bytes;
            stride - bytes
        };
        let unit = has_unit.then(|| take(8));
        let weight = has_weight.then(|| take(4));
        let target = has_target.then(|| take(4));
        let inputs = widths
            .into_iter()
            .map(|width| {
                let bytes = match width {
                    Width::Single => 4,
                    Width::Byte => 1,
                    Width::Two => 2,
                    Width::Vector(length) => 4 * length,
                    Width::Image(length) => 4 * length + DIGEST,
                };
                InputSlot { at: take(bytes), width }
            })
            .collect();
        Self { unit, weight, target, inputs, stride }
    }

    /// Bytes of a row.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    pub(crate) fn label(row: &[u8]) -> u16 {
        u16::from_le_bytes([row[0], row[1]])
    }

    pub(crate) fn group(row: &[u8]) -> u16 {
        u16::from_le_bytes([row[2], row[3]])
    }

    pub(crate) fn unit(&self, row: &[u8]) -> Option<u64> {
        self.unit.map(|at| u64::from_le_bytes(bytes(row, at)))
    }

    /// From 0 to 1; 1 where records have no weights.
    pub(crate) fn weight(&self, row: &[u8]) -> f32 {
        self.weight.map_or(1.0, |at| f32::from_le_bytes(bytes(row, at)))
    }

    /// From -1 to 1; 0 where classes are predicted.
    pub(crate) fn target(&self, row: &[u8]) -> f32 {
        self.target.map_or(0.0, |at| f32::from_le_bytes(bytes(row, at)))
    }

    /// The place of an input; an empty one of what has no code.
    pub(crate) fn slot(&self, input: usize) -> InputSlot {
        self.inputs.get(input).copied().unwrap_or(InputSlot { at: 0, width: Width::Vector(0) })
    }

    /// Writes a vector, or that it is missing.
    pub(crate) fn set_vector(&self, row: &mut [u8], input: usize, numbers: Option<&[f64]>) {
        let InputSlot { at, width } = self.inputs[input];
        let (Width::Vector(length) | Width::Image(length)) = width else { return };
        let slots = row[at..at + 4 * length].as_chunks_mut::<4>().0;
        for (place, slot) in slots.iter_mut().enumerate() {
            *slot = numbers.map_or(f32::NAN, |numbers| numbers[place] as f32).to_le_bytes();
        }
    }

    /// Writes the digest of an image, so that tables of other images have other digests.
    #[cfg(feature = "images")]
    pub(crate) fn set_digest(&self, row: &mut [u8], input: usize, digest: [u8; DIGEST]) {
        let InputSlot { at, width } = self.inputs[input];
        if let Width::Image(length) = width {
            row[at + 4 * length..at + 4 * length + DIGEST].copy_from_slice(&digest);
        }
    }

    /// A row without label, group, unit and inputs.
    pub(crate) fn blank(row: &mut [u8]) {
        row.fill(0);
        Self::set_label(row, BLANK);
    }

    pub(crate) fn set_label(row: &mut [u8], label: u16) {
        row[LABEL].copy_from_slice(&label.to_le_bytes());
    }

    pub(crate) fn set_group(row: &mut [u8], group: u16) {
        row[GROUP].copy_from_slice(&group.to_le_bytes());
    }

    pub(crate) fn set_unit(&self, row: &mut [u8], unit: u64) {
        if let Some(at) = self.unit {
            row[at..at + 8].copy_from_slice(&unit.to_le_bytes());
        }
    }

    pub(crate) fn set_weight(&self, row: &mut [u8], weight: f32) {
        if let Some(at) = self.weight {
            row[at..at + 4].copy_from_slice(&weight.to_le_bytes());
        }
    }

    pub(crate) fn set_target(&self, row: &mut [u8], target: f32) {
        if let Some(at) = self.target {
            row[at..at + 4].copy_from_slice(&target.to_le_bytes());
        }
    }

    pub(crate) fn set_input(&self, row: &mut [u8], input: usize, code: Code) {
        let InputSlot { at, width } = self.inputs[input];
        match (width, code) {
            (Width::Single, Code::Position(position)) => {
                row[at..at + 4].copy_from_slice(&position.unwrap_or(f32::NAN).to_le_bytes());
            }
            (Width::Byte, Code::Index(index)) => row[at] = index as u8,
            (Width::Two, Code::Index(index)) => row[at..at + 2].copy_from_slice(&index.to_le_bytes()),
            // A column's code has the column's width.
            (Width::Single, Code::Index(_))
            | (Width::Byte | Width::Two, Code::Position(_))
            | (Width::Vector(_) | Width::Image(_), _) => {}
        }
    }
}

fn bytes<const N: usize>(row: &[u8], at: usize) -> [u8; N] {
    row[at..at + N].as_chunks().0[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let layout = Layout::new(true, true, true, [Width::Byte, Width::Single, Width::Two, Width::Single]);
        assert_eq!(layout.stride(), 4 + 8 + 4 + 4 + 1 + 4 + 2 + 4);
        let mut row = vec![0; layout.stride()];
        let codes = [Code::Index(255), Code::Position(Some(3.5)), Code::Index(700), Code::Position(None)];
        Layout::set_label(&mut row, 3);
        Layout::set_group(&mut row, 9);
        layout.set_unit(&mut row, 1 << 60);
        layout.set_weight(&mut row, 0.25);
        layout.set_target(&mut row, -0.5);
        for (input, code) in codes.into_iter().enumerate() {
            layout.set_input(&mut row, input, code);
        }
        assert_eq!((Layout::label(&row), Layout::group(&row), layout.unit(&row)), (3, 9, Some(1 << 60)));
        assert_eq!([0, 2].map(|input| layout.slot(input).index(&row)), [255, 700]);
        assert_eq!([1, 3].map(|input| layout.slot(input).position(&row)), [Some(3.5), None]);
        assert_eq!((layout.weight(&row), layout.target(&row)), (0.25, -0.5));
        Layout::blank(&mut row);
        assert_eq!((Layout::label(&row), Layout::group(&row), layout.unit(&row)), (BLANK, 0, Some(0)));
        assert_eq!(layout.slot(0).index(&row), 0);
    }

    #[test]
    fn a_vector_is_read_as_it_was_written() {
        let layout = Layout::new(false, false, false, [Width::Byte, Width::Vector(3), Width::Byte]);
        assert_eq!(layout.stride(), 4 + 1 + 12 + 1);
        let mut row = vec![0; layout.stride()];
        layout.set_input(&mut row, 2, Code::Index(7));
        layout.set_weight(&mut row, 0.5);
        assert_eq!((layout.weight(&row), layout.target(&row)), (1.0, 0.0));
        let read = |row: &[u8]| layout.slot(1).vector(row).map(Iterator::collect::<Vec<f32>>);
        layout.set_vector(&mut row, 1, Some(&[0.5, -1.0, 0.0]));
        assert_eq!(read(&row), Some(vec![0.5, -1.0, 0.0]));
        layout.set_vector(&mut row, 1, None);
        assert_eq!((read(&row), layout.slot(2).index(&row)), (None, 7));
    }
}
