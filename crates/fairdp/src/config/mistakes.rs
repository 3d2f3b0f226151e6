//! Everything that is wrong with a configuration.

use dp_table::declaration::{Declaration, EntryError};

use super::Config;

impl Declaration for Config {
    fn stand_in(key: &str) -> Option<&'static str> {
        Some(match key {
            "version" | "epsilon" | "high" => "1",
            "delta" => "1e-6",
            "mean_trials" => "2",
            "files" | "candidate" => "[]",
            "table" => "{ files = [] }",
            "privacy" => "{ epsilon = 1, delta = 1e-6 }",
            "label" => "{ column = \"\", classes = [\"0\", \"1\"] }",
            "kind" => "\"drop\"",
            "mode" => "\"none\"",
            "column" | "name" | "scope" => "\"\"",
            _ => return None,
        })
    }

    fn mistakes(&self, is_whole: bool) -> Vec<EntryError> {
        self.all_mistakes(is_whole)
    }
}

#[cfg(test)]
mod tests {
    use dp_table::declaration::{Mistake, read};

    use super::*;

    fn found(text: &str) -> String {
        let line = |mistake: &Mistake| format!("{}:{}: {}", mistake.line, mistake.column, mistake.message);
        read::<Config>(text).unwrap_err().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_mistake_is_found_once() {
        let text = "version = 1\nfairnes = \"non\"\n[table]\nfiles = [\"t.csv\"]\nbad_rows = 3\n\
            [label]\ncolumn = \"y\"\nclass = [\"0\", \"1\"]\n[privacy]\nepsilom = 0\ndelta = \"small\"\n\
            [method]\nname = \"dpsdg\"\n\
            [[group]]\ncolumn = \"g\"\nvalues = [\"a\", \"b\"]\nedges = [1]\n\
            [[column]]\nname = \"x\"\nkind = \"nubmer\"\nlow = 2\nhigh = 1\n\
            [[column]]\nname = \"z\"\n[[column]]\nname = \"x\"\nkind = \"drop\"\n[mode]\n";
        insta::assert_snapshot!(found(text), @r#"
        2:1: unknown key `fairnes`: did you mean `fairness`?
        2:11: fairness: unknown name `non`: did you mean `none`?
        5:12: table.bad_rows: wanted string or table
        8:1: label: unknown key `class`: did you mean `classes`?
        10:1: privacy: unknown key `epsilom`: did you mean `epsilon`?
        11:9: privacy.delta: invalid type: string "small", expected f64
        13:1: method.name = "dpsdg": unknown; `fairdp methods` lists the names; did you mean `dpsgd`?
        15:1: group `g`: values and edges: expected one of the two
        19:1: column `x`: bounds 2 and 1 are not two finite numbers, the lower one first
        20:8: column[0].kind: unknown name `nubmer`: did you mean `number`?
        23:1: column[1]: `kind` is missing
        28:2: unknown key `mode`: did you mean `model`?
        "#);
        insta::assert_snapshot!(found("a = \n[b\nversion = 1\n"), @r"
        1:5: string values must be quoted, expected literal string
        2:3: unclosed table, expected `]`
        ");
        insta::assert_snapshot!(found(""), @r"
        1:1: `label` is missing
        1:1: `privacy` is missing
        1:1: `table` is missing
        1:1: `version` is missing
        ");
    }
}
