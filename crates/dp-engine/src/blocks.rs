//! Blocks of records, and the pieces in which a batch is summed.

use std::ops::Range;

/// The records of a data set in blocks of consecutive numbers, and the pieces of a batch that
/// follow.
///
/// A *block* is drawn from on its own, under a key of the step
/// (`dp_train::PoissonSampler`). A *piece* is what was drawn from one block, or a
/// part of it where that is unusually much. The clipped gradients of a piece are summed in floating
/// point; pieces are added as integers, so that their sum does not depend on who summed which
/// (threads, restarts). One record is in one piece, and who else is in it depends on the draw
/// alone.
///
/// **Guarantee.** Blocks and the longest piece are functions of the number of records, the sampling
/// rate and the configuration, which are public.
///
/// **Example**
/// ```
/// use dp_engine::Blocks;
/// let blocks = Blocks::new(1_000, 0.5, Some(4));
/// // Records 0 to 3 are one block, 4 to 7 the next: two pieces, as positions in the batch.
/// assert_eq!(blocks.pieces(&[0, 2, 3, 5, 6]), [0..3, 3..5]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    block: usize,
    longest: usize,
}

impl Blocks {
    /// Blocks of `block` records of a data set that is sampled at this rate; `None` chooses.
    pub fn new(n_records: usize, sampling_rate: f64, block: Option<usize>) -> Self {
        let block = block.unwrap_or_else(|| default_block(n_records, sampling_rate)).clamp(1, n_records.max(1));
        let mean = sampling_rate * block as f64;
        // Four standard deviations above the mean: a longer one, which is rare, is cut.
        let longest = mean + 4.0 * (mean * (1.0 - sampling_rate)).sqrt();
        Self { block, longest: (longest.ceil() as usize).clamp(1, block) }
    }

    /// Records of a block.
    pub fn block(self) -> usize {
        self.block
    }

    /// Records of a piece, at most.
    pub fn longest(self) -> usize {
        self.longest
    }

    /// The pieces of a batch of ascending record numbers: ranges of positions in it, in order.
    pub fn pieces(self, rows: &[usize]) -> Vec<Range<usize>> {
        let mut pieces: Vec<Range<usize>> = Vec::new();
        let mut block = 0..0;
        for (position, &row) in rows.iter().enumerate() {
            match pieces.last_mut() {
                Some(piece) if piece.len() < self.longest && block.contains(&row) => piece.end = position + 1,
                _ => {
                    pieces.push(position..position + 1);
                    let first = row - row % self.block;
                    block = first..first.saturating_add(self.block);
                }
            }
        }
        pieces
    }
}

/// Records of a block of which about 128 are drawn, or half of a smaller batch: two threads then
/// have a piece each.
///
/// Each piece is converted to integers once, which costs as much as some dozens of records; and
/// within a piece the rounding that is charged for grows with the square of its length, 1e-3 of the
/// bound for 128.
fn default_block(n_records: usize, sampling_rate: f64) -> usize {
    const DRAWN: f64 = 128.0;
    const SMALL_BATCH: f64 = 32.0;
    let expected = sampling_rate * n_records as f64;
    let n_blocks = if expected < SMALL_BATCH { 1 } else { 2 * (expected / (2.0 * DRAWN)).ceil() as usize };
    n_records.div_ceil(n_blocks.max(1))
}

/// Parts of nearly equal length, one for each worker, that hold whole pieces: ranges of pieces.
pub(crate) fn share(pieces: &[Range<usize>], n_workers: usize) -> Vec<Range<usize>> {
    let n_rows = pieces.last().map_or(0, |piece| piece.end) - pieces.first().map_or(0, |piece| piece.start);
    let first = pieces.first().map_or(0, |piece| piece.start);
    let mut shares = Vec::with_capacity(n_workers);
    let mut start = 0;
    for worker in 1..=n_workers {
        let target = first + n_rows * worker / n_workers;
        // The piece boundary that is nearest to the even share.
        let mut end = start;
        while end < pieces.len() && pieces[end].end.abs_diff(target) <= pieces[end].start.abs_diff(target) {
            end += 1;
        }
        if worker == n_workers {
            end = pieces.len();
        }
        if end > start {
            shares.push(start..end);
        }
        start = end;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_the_blocks() {
        let blocks = Blocks { block: 10, longest: 3 };
        assert_eq!(blocks.pieces(&[0, 3, 9, 10, 31, 32, 33, 34]), [0..3, 3..4, 4..7, 7..8]);
        assert!(blocks.pieces(&[]).is_empty());
    }

    #[test]
    fn blocks_are_public_and_cut_long_pieces() {
        // 256 of 28,000: two blocks, of 128 records on average and 45 above that.
        assert_eq!(Blocks::new(28_000, 256.0 / 28_000.0, None), Blocks { block: 14_000, longest: 174 });
        assert_eq!(Blocks::new(60_000, 0.2, None).block(), 639);
        // Full batches: what is drawn is known.
        assert_eq!(Blocks::new(1_000, 1.0, None), Blocks { block: 125, longest: 125 });
        assert_eq!(Blocks::new(10, 0.1, None), Blocks { block: 10, longest: 5 });
        assert_eq!(Blocks::new(10, 0.5, Some(4)).block(), 4);
    }

    #[test]
    fn shares_are_whole_pieces_and_leave_nothing_out() {
        let pieces = [0..5, 5..9, 9..20, 20..21];
        assert_eq!(share(&pieces, 2), [0..2, 2..4]);
        assert_eq!(share(&pieces, 1), vec![0..4; 1]);
        assert_eq!(share(&pieces[2..], 3), [0..1, 1..2]);
        assert!(share(&[], 2).is_empty());
        for n in 1..6 {
            let shares = share(&pieces, n);
            assert_eq!(shares.iter().map(ExactSizeIterator::len).sum::<usize>(), 4, "{shares:?}");
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
