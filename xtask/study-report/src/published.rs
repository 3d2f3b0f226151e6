//! Tables as the papers print them.

use anyhow::{Context, bail};

use super::metric::Column;
use super::statistics::PublishedFigure;

/// A number with the rounding its printed digits imply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed {
    /// The number.
    pub value: f64,
    /// Digits after the point.
    pub decimals: usize,
}

impl Printed {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let value: f64 = text.parse().with_context(|| format!("`{text}` is not a number"))?;
        if !value.is_finite() {
            bail!("`{text}` is not finite");
        }
        let decimals = text.split_once('.').map_or(0, |(_, digits)| digits.len());
        Ok(Self { value, decimals })
    }

    /// Half a unit of the last printed digit: how far the unrounded number may lie from the printed
    /// one.
    pub fn half_unit(self) -> f64 {
        0.5 * 10.0_f64.powi(-i32::try_from(self.decimals).unwrap_or(i32::MAX))
    }
}

/// One published figure.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedCell {
    /// Registry name of the method.
    pub method: String,
    /// What it measures.
    pub column: Column,
    /// Records that the printed number is a sum over; 1 for what is no sum.
    pub summed: f64,
    /// The mean.
    pub value: Printed,
    /// One standard error; `None` if the paper prints none.
    pub standard_error: Option<Printed>,
}

/// One published table, or the part of it that a study reproduces.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedTable {
    /// For example `Esipova et al. 2023, Table 4`.
    pub citation: String,
    /// What it was measured on.
    pub data: String,
    /// Runs that each figure is a mean of; 1 where the paper does not say.
    pub runs: usize,
    /// In the order of the paper.
    pub cells: Vec<PublishedCell>,
}

impl PublishedCell {
    /// The figure as fractions and means per record, to set beside ours. A standard error that is
    /// printed as zero counts as its rounding.
    pub fn figure(&self, runs: usize) -> PublishedFigure {
        let unit = if self.column.percent { 100.0 } else { 1.0 } * self.summed;
        let error =
            self.standard_error.map(|printed| if printed.value > 0.0 { printed.value } else { printed.half_unit() });
        PublishedFigure {
            value: self.value.value / unit,
            standard_error: error.map(|error| error / unit),
            runs,
            rounding: self.value.half_unit() / unit,
        }
    }
}

impl PublishedTable {
    /// Reads a table: `# key: value` lines, one header line, then `method group metric value
    /// standard_error`, separated by tabs, numbers with the digits that were printed and `-` for
    /// what was not. `_sum256` at the end of a metric: the printed number is the sum over 256
    /// records.
    ///
    /// # Errors
    /// Names the line.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut citation = None;
        let mut data = None;
        let mut runs = 1;
        let mut cells = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            if let Some(comment) = line.strip_prefix("# ") {
                match comment.split_once(": ") {
                    Some(("citation", value)) => citation = Some(value.to_owned()),
                    Some(("data", value)) => data = Some(value.to_owned()),
                    Some(("spread", value)) => {
                        runs = runs_of(value).with_context(|| format!("published table, line {line_number}"))?;
                    }
                    _ => {}
                }
            } else if !line.starts_with("method\t") {
                cells.push(parse_cell(line).with_context(|| format!("published table, line {line_number}"))?);
            }
        }
        Ok(Self {
            citation: citation.context("published table without a `# citation:` line")?,
            data: data.context("published table without a `# data:` line")?,
            runs,
            cells,
        })
    }

    /// Methods in the order of the paper.
    pub fn methods(&self) -> Vec<&str> {
        let mut methods: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !methods.contains(&cell.method.as_str()) {
                methods.push(&cell.method);
            }
        }
        methods
    }

    /// Columns in the order of the paper: as the fullest row has them, then any that it lacks.
    pub fn columns(&self) -> Vec<&Column> {
        let fullest = self.methods().into_iter().rev().max_by_key(|method| self.row(method).count());
        let mut columns: Vec<&Column> = Vec::new();
        for cell in fullest.into_iter().flat_map(|method| self.row(method)).chain(&self.cells) {
            if !columns.contains(&&cell.column) {
                columns.push(&cell.column);
            }
        }
        columns
    }

    /// The figures of a method.
    pub fn row<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a PublishedCell> {
        self.cells.iter().filter(move |cell| cell.method == method)
    }

    /// The figure of a method in a column.
    pub fn cell(&self, method: &str, column: &Column) -> Option<&PublishedCell> {
        self.cells.iter().find(|cell| cell.method == method && cell.column == *column)
    }
}

/// The number of seeds of "mean and one standard error over 5 seeds"; 1 for "none printed".
fn runs_of(spread: &str) -> anyhow::Result<usize> {
    if spread == "none printed" {
        return Ok(1);
    }
    let words: Vec<&str> = spread.split(' ').collect();
    match words[..] {
        [.., n, "seeds"] => match n.parse() {
            Ok(n) if n > 0 => Ok(n),
            _ => bail!("`{n}` is no number of seeds"),
        },
        _ => bail!("spread `{spread}`: expected `none printed` or `… over N seeds`"),
    }
}

fn parse_cell(line: &str) -> anyhow::Result<PublishedCell> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [method, group, metric, value, standard_error] = fields[..] else {
        bail!("{} fields, expected 5", fields.len());
    };
    let (metric, summed) = match metric.rsplit_once("_sum") {
        Some((name, records)) => match records.parse::<u32>() {
            Ok(records) if records > 0 => (name, f64::from(records)),
            _ => bail!("metric `{metric}`: `{records}` is no number of records"),
        },
        None => (metric, 1.0),
    };
    let column = Column::parse(metric, group)?;
    let standard_error = if standard_error == "-" { None } else { Some(Printed::parse(standard_error)?) };
    Ok(PublishedCell { method: method.to_owned(), column, summed, value: Printed::parse(value)?, standard_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_printed() {
        let printed = Printed::parse("0.40").unwrap();
        assert_eq!((printed.value, printed.decimals), (0.4, 2));
        assert!((printed.half_unit() - 0.005).abs() < 1e-15);
    }

    #[test]
    fn bad_lines_are_named() {
        let header = "# citation: A\n# data: B\nmethod\tgroup\tmetric\tvalue\tstandard_error\n";
        let error = |line: &str| format!("{:#}", PublishedTable::parse(&format!("{header}{line}")).unwrap_err());
        let errors = [
            error("dpsgd\tmale\tloss"),
            error("dpsgd\tmale\tlosss\t0.1\t-"),
            error("dpsgd\tmale\tloss_sum0\t0.1\t-"),
            error("dpsgd\tmale\tloss\tnone\t-"),
            error("dpsgd\tmale\tloss\tinf\t-"),
            format!("{:#}", PublishedTable::parse("# spread: over many seeds\n").unwrap_err()),
            format!("{:#}", PublishedTable::parse("").unwrap_err()),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r"
        published table, line 4: 3 fields, expected 5
        published table, line 4: metric `losss` is not known
        published table, line 4: metric `loss_sum0`: `0` is no number of records
        published table, line 4: `none` is not a number: invalid float literal
        published table, line 4: `inf` is not finite
        published table, line 1: `many` is no number of seeds
        published table without a `# citation:` line
        ");
    }
}
