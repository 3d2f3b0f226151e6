//! From labels, predictions and groups to a gap, with an interval that says how sure it is.

use fair_metrics::{Attribute, BinaryRate, Decisions, Labels, Predictions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 400 people; three in ten answers are wrong for women, one in ten for men.
    let sex: Vec<&str> = (0..400).map(|i| ["women", "men"][i % 2]).collect();
    let labels: Vec<bool> = (0..400).map(|i| i % 7 < 3).collect();
    let is_wrong = |i: usize| (i / 2) % 10 < if sex[i] == "women" { 3 } else { 1 };
    let predictions: Vec<bool> = (0..400).map(|i| labels[i] != is_wrong(i)).collect();

    let decisions = Decisions::new(Labels(&labels), Predictions(&predictions), &true)?;
    let sex = [Attribute::from_labels("sex", &sex)];
    for rate in [BinaryRate::Accuracy, BinaryRate::TruePositiveRate] {
        let frame = decisions.frame(&sex, &[], rate)?;
        let intervals = decisions.intervals(&sex, &[], rate, 0.95)?;
        println!("{rate:?}");
        for (group, interval) in frame.strata()[0].by_group.iter().zip(&intervals[0].by_group) {
            println!("  {}: {} [{:.3}, {:.3}]", group.levels.join(" "), group.measured, interval.low, interval.high);
        }
        // Holds for all pairs of groups together.
        let gap = intervals[0].difference.all;
        println!("  difference: at least {:.3}, at most {:.3}", gap.low, gap.high);
        assert!(gap.low > 0.0 && gap.low < 0.2 && gap.high > 0.2);
    }
    Ok(())
}
