//! YAML of texts, numbers, lists and maps. Texts are quoted as in JSON, which YAML reads.

/// A value.
pub(super) enum Yaml {
    Text(String),
    Number(f64),
    Texts(Vec<String>),
    Map(Vec<(&'static str, Yaml)>),
}

impl Yaml {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Lines, each indented by so many blanks. A map is not empty.
    pub(super) fn write(&self, indent: usize, out: &mut String) {
        match self {
            Self::Text(text) => *out += &format!(" {}\n", quoted(text)),
            Self::Number(number) => *out += &format!(" {number}\n"),
            Self::Texts(texts) => {
                out.push('\n');
                for text in texts {
                    *out += &format!("{:indent$}- {}\n", "", quoted(text));
                }
            }
            Self::Map(entries) => {
                if indent > 0 {
                    out.push('\n');
                }
                for (key, value) in entries {
                    *out += &format!("{:indent$}{key}:", "");
                    value.write(indent + 2, out);
                }
            }
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_become_anything_else() {
        let value = Yaml::Map(vec![
            ("a", Yaml::text("no: \"b\"\n- c")),
            ("d", Yaml::Map(vec![("e", Yaml::Number(0.5)), ("f", Yaml::Texts(vec!["yes".into()]))])),
        ]);
        let mut text = String::new();
        value.write(0, &mut text);
        assert_eq!(text, "a: \"no: \\\"b\\\"\\n- c\"\nd:\n  e: 0.5\n  f:\n    - \"yes\"\n");
    }
}
