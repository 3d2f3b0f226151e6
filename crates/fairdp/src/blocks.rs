//! The blocks of columns that conditioned training whitens: the numbers of each vector, the features of
//! each image, and all other features together.

use dp_linear::conditioning::ColumnBlock;
use dp_table::{BlockKind, Encoding};

/// Blocks of an encoding, that of the other features first where there are any; the constant is in
/// none.
pub(crate) fn column_blocks(encoding: &Encoding) -> Vec<ColumnBlock> {
    let scale = f64::from(encoding.scale());
    let (mut table, mut square, mut vectors) = (Vec::new(), 0.0, Vec::new());
    for block in encoding.blocks() {
        match &block.kind {
            BlockKind::Vector { length, missing, .. } | BlockKind::Image { length, missing, .. } => {
                let numbers = block.features.start..block.features.start + length;
                if *missing {
                    table.push(numbers.end);
                    square += 1.0;
                }
                vectors.push(ColumnBlock {
                    name: format!("`{}`", block.column),
                    columns: numbers.collect(),
                    norm: scale,
                });
            }
            BlockKind::Constant => {}
            kind => {
                table.extend(block.features.clone());
                square += kind.largest_square();
            }
        }
    }
    let all = ColumnBlock { name: "the table's features".into(), columns: table, norm: scale * square.sqrt() };
    std::iter::once(all).filter(|block| !block.columns.is_empty()).chain(vectors).collect()
}

/// The purposes of the releases about a block: its mean, and its covariance or the diagonal of it.
pub(crate) fn purposes(block: &ColumnBlock) -> [String; 2] {
    let covariance = if block.is_whole() { "covariance" } else { "variances" };
    [format!("mean of {}", block.name), format!("{covariance} of {}", block.name)]
}
