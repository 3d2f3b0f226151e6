//! The little of Protocol Buffers that an ONNX file needs: varints and length-delimited fields.

/// A message while it is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// An integer, an enumeration or a truth value.
    pub(super) fn integer(mut self, field: u32, value: i64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value.cast_unsigned());
        self
    }

    /// Text, bytes, or packed numbers.
    pub(super) fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn text(self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    pub(super) fn messages<'a>(self, field: u32, values: impl IntoIterator<Item = &'a Self>) -> Self {
        values.into_iter().fold(self, |message, value| message.message(field, value))
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding's specification: 150 in field 1, "testing" in field 2.
    #[test]
    fn by_the_specification() {
        assert_eq!(Message::default().integer(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").into_bytes(), b"\x12\x07testing");
        assert_eq!(Message::default().integer(1, -1).into_bytes().len(), 11);
    }
}
