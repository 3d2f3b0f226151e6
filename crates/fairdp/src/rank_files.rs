//! The files of a table, as the ranks of a run read them: each rank its own rows, or all rows.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dp_table::{EncodedFile, EncodedTable, Peers, RowIndex, RowsDigest, Schema, TableCounts, TableFiles, TableReader};
use dp_train::ranks::{Alone, Collective};

use crate::error::{FairdpError, Result};

/// Files of a table, and who reads them.
///
/// If a rank cannot read its part, all of them read the whole table: so each has the error that a
/// process alone would have.
pub(crate) struct RankFiles {
    files: TableFiles,
    /// The ranks that read the table together; one process alone if every rank reads all of it.
    ranks: Arc<dyn Collective>,
    index: Option<RowIndex>,
}

impl RankFiles {
    /// A table of which every rank reads all rows, unless it is to be shared.
    pub(crate) fn new(files: TableFiles, ranks: &Arc<dyn Collective>, is_shared: bool) -> Result<Self> {
        let mut source = Self { files, ranks: ranks.clone(), index: None };
        if is_shared && ranks.size() > 1 {
            source.index = with_peers(&**ranks, |peers| RowIndex::new(&source.files, peers))?;
        }
        if source.index.is_none() {
            source.ranks = Arc::new(Alone);
        }
        Ok(source)
    }

    /// Whether each rank has its own rows alone.
    pub(crate) fn is_shared(&self) -> bool {
        self.index.is_some()
    }

    /// The ranks that hold the table together.
    pub(crate) fn ranks(&self) -> &dyn Collective {
        &*self.ranks
    }

    /// The first file, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.files.paths()[0]
    }

    /// Calls `make` with this rank's rows and the number of the first one.
    pub(crate) fn read<T>(&mut self, make: impl Fn(TableReader, usize) -> Result<T>) -> Result<T> {
        if let Some(index) = &self.index {
            let rows = with_peers(&*self.ranks, |peers| index.part(peers));
            let reader = self.files.open_rows(index, rows.clone());
            let made = reader.map_err(Into::into).and_then(|reader| make(reader, rows.start));
            let all = self.ranks.gather(vec![u8::from(made.is_ok())])?;
            if all.iter().all(|is_made| *is_made == [1]) {
                return made;
            }
            self.stop_sharing();
        }
        make(self.files.open()?, 0)
    }

    /// The digest of all rows, from that of this rank's.
    pub(crate) fn sum(&self, mine: RowsDigest) -> Result<RowsDigest> {
        let failed = FairdpError::json("a digest of rows");
        let all = self.ranks.gather(serde_json::to_vec(&mine).map_err(&failed)?)?;
        let mut all = all.iter().map(|digest| serde_json::from_slice(digest).map_err(&failed));
        all.try_fold(RowsDigest::default(), |sum, digest| Ok(sum.plus(digest?)))
    }

    /// The table, with this rank's rows alone where it is shared. `place` is for a whole table,
    /// `folder` for a part.
    pub(crate) fn encode(
        &mut self,
        schema: &Schema,
        place: EncodedFile<'_>,
        folder: &Path,
    ) -> Result<(EncodedTable, TableCounts)> {
        if let Some(index) = &self.index {
            let files = &self.files;
            let part =
                with_peers(&*self.ranks, |peers| EncodedTable::create_part(files, schema, folder, index, peers))?;
            if let Some(part) = part {
                return Ok(part);
            }
            self.stop_sharing();
        }
        Ok(EncodedTable::create(&self.files, schema, place)?)
    }

    /// Other rows of a table that was read from here; `None` if it is not shared.
    pub(crate) fn other_rows(
        &self,
        table: &EncodedTable,
        rows: Range<usize>,
        folder: &Path,
    ) -> Result<Option<EncodedTable>> {
        let Some(index) = &self.index else { return Ok(None) };
        Ok(Some(with_peers(&*self.ranks, |peers| table.other_rows(&self.files, folder, index, rows, peers))?))
    }

    fn stop_sharing(&mut self) {
        self.index = None;
        self.ranks = Arc::new(Alone);
    }
}

fn with_peers<T>(ranks: &dyn Collective, read: impl FnOnce(&Peers<'_>) -> T) -> T {
    let gather = |message| ranks.gather(message).map_err(io::Error::other);
    read(&Peers::new(ranks.rank(), ranks.size(), &gather))
}
