//! Losses of the three parts and gaps between groups, as dots by method: for experiments that have
//! validation records.

use fair_report::plot::{Dot, DotPanel, DotSeries, Panel, Plot};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MetricsRecord, RunRecord};

use super::figures::DrawnFigure;
use super::label::label;
use super::metric::{Column, Metric, Subject};
use super::presentation::TablePresentation;

/// The metrics of one part.
type Part = fn(&RunRecord) -> Option<&MetricsRecord>;

/// Both plots; none for an experiment without validation records.
pub(super) fn figures(
    experiment: &ExperimentResults,
    tables: &[TablePresentation],
    mark: Option<Mark>,
) -> anyhow::Result<Vec<DrawnFigure>> {
    let mut runs = experiment.methods.iter().flat_map(|method| &method.runs).peekable();
    if runs.peek().is_none() || runs.any(|run| run.validation.is_none()) {
        return Ok(Vec::new());
    }
    let loss = Column::parse("loss", "total")?;
    let parts: [(&str, Part); 3] = [
        ("training", |run| Some(&run.train)),
        ("validation", |run| run.validation.as_ref()),
        ("test", |run| Some(&run.test)),
    ];
    let mut of_parts = Vec::new();
    for (name, part) in parts {
        of_parts.push(series(name, &with_part(experiment, part), &loss)?);
    }
    let mut figures =
        vec![figure(experiment, mark, "losses", "Mean loss of the final model by part", "loss (nats)", of_parts)];
    let mut gaps: Vec<&Column> = Vec::new();
    let published = tables.iter().filter(|table| table.experiment == experiment.id);
    for column in published.flat_map(|table| table.published.columns()) {
        let is_gap = column.metric == Metric::LossGap && matches!(column.subject, Subject::Between(..));
        if is_gap && gaps.iter().all(|other| other.subject != column.subject) {
            gaps.push(column);
        }
    }
    if !gaps.is_empty() {
        let between = |column: &Column| match &column.subject {
            Subject::Between(one, other) => format!("{one}, {other}"),
            _ => column.to_string(),
        };
        let of_gaps = gaps
            .into_iter()
            .map(|column| series(&between(column), experiment, column))
            .collect::<anyhow::Result<Vec<DotSeries>>>()?;
        let words = "Gap between two groups' test losses";
        figures.push(figure(experiment, mark, "loss-gaps", words, "gap (nats)", of_gaps));
    }
    Ok(figures)
}

/// The same runs with the metrics of this part in the place of the test part's.
fn with_part(experiment: &ExperimentResults, part: Part) -> ExperimentResults {
    let mut experiment = experiment.clone();
    for run in experiment.methods.iter_mut().flat_map(|method| &mut method.runs) {
        if let Some(metrics) = part(run).cloned() {
            run.test = metrics;
        }
    }
    experiment
}

fn series(name: &str, experiment: &ExperimentResults, column: &Column) -> anyhow::Result<DotSeries> {
    let dots = experiment.methods.iter().map(|method| {
        let estimate = column.estimate(experiment, method)?;
        Ok(estimate.mean.map(|mean| Dot { mean, standard_error: estimate.standard_error, published: None }))
    });
    Ok(DotSeries { name: name.to_owned(), dots: dots.collect::<anyhow::Result<_>>()? })
}

fn figure(
    experiment: &ExperimentResults,
    mark: Option<Mark>,
    stem: &str,
    words: &str,
    axis: &str,
    series: Vec<DotSeries>,
) -> DrawnFigure {
    let categories: Vec<String> = experiment.methods.iter().map(|method| label(&method.method)).collect();
    let of_method = |(index, name): (usize, &String)| {
        let value = |series: &DotSeries| match series.dots[index] {
            Some(dot) => format!("{} {:.3}", series.name, dot.mean),
            None => format!("{} undefined", series.name),
        };
        format!("{name}: {}", series.iter().map(value).collect::<Vec<_>>().join(", "))
    };
    let alt = categories.iter().enumerate().map(of_method).collect::<Vec<_>>().join("; ");
    DrawnFigure {
        stem: format!("{}-{stem}", experiment.id),
        caption: marked(mark, &format!("{words}, mean ± standard error over seeds. {}.", experiment.title)),
        alt: format!("Dot chart. {words}. {alt}."),
        plot: Plot {
            title: marked(mark, &experiment.title),
            panels: vec![Panel::Dots(DotPanel {
                title: marked(mark, words),
                x_label: axis.to_owned(),
                categories,
                series,
                limits: (0.0, f64::INFINITY),
                decimals: 3,
            })],
            n_columns: 1,
        },
    }
}
