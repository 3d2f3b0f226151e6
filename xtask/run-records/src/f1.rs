//! F1 of a model's answers.

use crate::MetricsRecord;

impl MetricsRecord {
    /// F1 of the second of two classes, from the recalls and the number of records of each class.
    pub fn f1(&self) -> Option<f64> {
        let ([Some(specificity), Some(recall)], [negatives, positives]) =
            (&self.class_recall[..], &self.class_sizes[..])
        else {
            return None;
        };
        let true_positives = recall * *positives as f64;
        let false_positives = (1.0 - specificity) * *negatives as f64;
        // 2·TP / (2·TP + FP + FN), and TP + FN are the positives.
        let denominator = true_positives + false_positives + *positives as f64;
        (denominator > 0.0).then(|| 2.0 * true_positives / denominator)
    }
}

#[cfg(test)]
mod tests {
    use crate::made_up as fixture;

    #[test]
    fn f1_by_hand() {
        // 40 positives of which 30 are found, 60 negatives of which 6 are taken for positives:
        // precision 30/36, recall 0.75.
        let mut metrics = fixture::study().experiments[0].methods[0].runs[0].test.clone();
        metrics.class_recall = vec![Some(0.9), Some(0.75)];
        metrics.class_sizes = vec![60, 40];
        let (precision, recall) = (30.0 / 36.0, 0.75);
        assert!((metrics.f1().unwrap() - 2.0 * precision * recall / (precision + recall)).abs() < 1e-12);
    }
}
