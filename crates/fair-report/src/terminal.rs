//! Tables in a terminal.

/// Columns under each other, two blanks apart: those for which `is_text` says so from the left, the
/// others, which are figures, from the right.
///
/// **Example**
/// ```
/// let rows = [["method", "ε"], ["dpsgd", "10.25"]].map(|row| row.map(str::to_owned).to_vec());
/// assert_eq!(fair_report::aligned(&rows, |column| column == 0), ["method      ε", "dpsgd   10.25"]);
/// ```
pub fn aligned(rows: &[Vec<String>], is_text: impl Fn(usize) -> bool) -> Vec<String> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..n_columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            line += &if is_text(column) { format!("{gap}{cell:<width$}") } else { format!("{gap}{cell:>width$}") };
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_the_left_and_figures_from_the_right() {
        let rows =
            [vec!["method", "ε"], vec!["dpsgd", "10.25"]].map(|row| row.iter().map(ToString::to_string).collect());
        assert_eq!(aligned(&rows, |column| column == 0), ["method      ε", "dpsgd   10.25"]);
        assert!(aligned(&[], |_| true).is_empty());
    }
}
