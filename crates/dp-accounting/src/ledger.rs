//! The append-only record of what was released.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    Accountant, AccountingError, Delta, DpEvent, EpsilonBound, NeighbouringRelation, PldAccountant, canonical,
};

/// Events with counts in the order of their release, chained by SHA-256 so that later changes show.
///
/// Equal events in a row are one entry with a count, so a ledger is the same whether a step was
/// recorded a thousand times or once with count 1000.
///
/// **Guarantee.** [`verify`](Self::verify), and deserialising, fail if an entry was changed,
/// removed, inserted or reordered without recomputing every later digest. A stored ledger carries
/// its length and last digest (`n_entries`, `last_digest`), so deserialising fails as well if it
/// was cut or continued at its end; one without them, as written up to November 2026, is refused.
/// Who rewrites entries, digests and length together is seen only by a witness: the last digest,
/// [`digest`](Self::digest), published elsewhere, pins the whole ledger.
///
/// Digests are taken of a canonical encoding of events. The encoding has a version, and neither a
/// compiler nor a JSON writer can change it. A ledger of another version is refused: up to version
/// 1 digests were of text that Rust does not promise to keep.
///
/// **Example**
/// ```
/// use dp_accounting::{DpEvent, Ledger, NeighbouringRelation, NoiseMultiplier};
/// let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?);
/// let (mut counted, mut listed) = (Ledger::new(NeighbouringRelation::AddRemove), Ledger::new(NeighbouringRelation::AddRemove));
/// counted.record(&step, 3)?;
/// for _ in 0..3 {
///     listed.record(&step, 1)?;
/// }
/// assert_eq!(counted, listed);
/// assert_eq!(counted.digest(), listed.digest());
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedLedger", into = "UncheckedLedger")]
pub struct Ledger {
    relation: NeighbouringRelation,
    entries: Vec<LedgerEntry>,
}

/// One event with the number of its releases in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerEntry {
    event: DpEvent,
    count: u64,
    digest: String,
}

impl LedgerEntry {
    /// The event.
    pub const fn event(&self) -> &DpEvent {
        &self.event
    }

    /// How many times.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// SHA-256, in hexadecimal, of the digest before this entry, the event and the count.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

#[derive(Serialize, Deserialize)]
struct UncheckedLedger {
    /// Version of the digests.
    #[serde(default = "version_without_number")]
    version: u32,
    relation: NeighbouringRelation,
    #[serde(default)]
    n_entries: Option<u64>,
    #[serde(default)]
    last_digest: Option<String>,
    entries: Vec<LedgerEntry>,
}

impl TryFrom<UncheckedLedger> for Ledger {
    type Error = AccountingError;
    fn try_from(stored: UncheckedLedger) -> Result<Self, AccountingError> {
        let UncheckedLedger { version, relation, n_entries, last_digest, entries } = stored;
        if version != canonical::VERSION {
            return Err(AccountingError::LedgerVersion { found: version, supported: canonical::VERSION });
        }
        let (Some(n_entries), Some(last_digest)) = (n_entries, last_digest) else {
            return Err(AccountingError::LedgerWithoutEnd);
        };
        let ledger = Self { relation, entries };
        ledger.verify()?;
        let (n_found, found) = (ledger.entries.len() as u64, ledger.digest());
        if (n_found, &found) != (n_entries, &last_digest) {
            return Err(AccountingError::LedgerCut { n_found, found, n_expected: n_entries, expected: last_digest });
        }
        Ok(ledger)
    }
}

impl From<Ledger> for UncheckedLedger {
    fn from(ledger: Ledger) -> Self {
        let (n_entries, last_digest) = (Some(ledger.entries.len() as u64), Some(ledger.digest()));
        let Ledger { relation, entries } = ledger;
        Self { version: canonical::VERSION, relation, n_entries, last_digest, entries }
    }
}

/// Ledgers before version 2 have no number.
const fn version_without_number() -> u32 {
    1
}

impl Ledger {
    /// An empty ledger.
    pub const fn new(relation: NeighbouringRelation) -> Self {
        Self { relation, entries: Vec::new() }
    }

    /// The relation under which the events are to be read.
    pub const fn relation(&self) -> NeighbouringRelation {
        self.relation
    }

    /// Appends `count` releases of an event; a count of 0 and [`DpEvent::nothing`] append nothing.
    ///
    /// # Errors
    /// [`AccountingError::CountOverflow`] when the count of a row of equal events no longer fits;
    /// [`AccountingError::InvalidParameter`] for events nested more than 64 levels deep.
    pub fn record(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        event.check_levels()?;
        self.all_or_nothing(|ledger| ledger.record_parts(event, count))
    }

    fn record_parts(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        match event {
            DpEvent::SelfComposed { event, count: inner } => {
                let total = inner.checked_mul(count).ok_or(AccountingError::CountOverflow { limit: u64::MAX })?;
                self.record_parts(event, total)
            }
            DpEvent::Composed(events) if count == 1 || events.len() == 1 => {
                events.iter().try_for_each(|event| self.record_parts(event, count))
            }
            _ => self.append(event, count),
        }
    }

    /// Appends, or leaves the ledger as it was.
    fn all_or_nothing(
        &mut self,
        append: impl FnOnce(&mut Self) -> Result<(), AccountingError>,
    ) -> Result<(), AccountingError> {
        // Appending changes nothing before the last entry.
        let (length, last) = (self.entries.len(), self.entries.last().cloned());
        let appended = append(self);
        if appended.is_err() {
            self.entries.truncate(length.saturating_sub(1));
            self.entries.extend(last);
        }
        appended
    }

    fn append(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        if count == 0 || *event == DpEvent::nothing() {
            return Ok(());
        }
        let last = self.entries.len().checked_sub(1).filter(|&last| self.entries[last].event == *event);
        if let Some(last) = last {
            let total = self.entries[last].count.checked_add(count);
            let total = total.ok_or(AccountingError::CountOverflow { limit: u64::MAX })?;
            let digest = chained_digest(self.digest_before(last).as_str(), event, total);
            self.entries[last].count = total;
            self.entries[last].digest = digest;
        } else {
            let digest = chained_digest(self.digest().as_str(), event, count);
            self.entries.push(LedgerEntry { event: event.clone(), count, digest });
        }
        Ok(())
    }

    /// Appends all entries of another ledger.
    ///
    /// # Errors
    /// [`AccountingError::RelationMismatch`] for another relation,
    /// [`AccountingError::LedgerTampered`] when the other one does not verify.
    pub fn merge(&mut self, other: &Self) -> Result<(), AccountingError> {
        if self.relation != other.relation {
            return Err(AccountingError::RelationMismatch { left: self.relation, right: other.relation });
        }
        other.verify()?;
        self.all_or_nothing(|ledger| {
            other.entries.iter().try_for_each(|entry| ledger.append(&entry.event, entry.count))
        })
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.entries
    }

    /// Digest of the whole ledger.
    pub fn digest(&self) -> String {
        self.digest_before(self.entries.len())
    }

    fn digest_before(&self, index: usize) -> String {
        if let Some(previous) = index.checked_sub(1) {
            return self.entries[previous].digest.clone();
        }
        let start = format!("dp-accounting ledger, version {}, {} neighbours", canonical::VERSION, self.relation);
        hexadecimal(&Sha256::digest(start))
    }

    /// Checks every digest.
    ///
    /// # Errors
    /// [`AccountingError::LedgerTampered`] names the first entry whose digest does not follow from
    /// what precedes it.
    pub fn verify(&self) -> Result<(), AccountingError> {
        for (index, entry) in self.entries.iter().enumerate() {
            let expected = chained_digest(self.digest_before(index).as_str(), &entry.event, entry.count);
            if expected != entry.digest {
                return Err(AccountingError::LedgerTampered { index, expected, found: entry.digest.clone() });
            }
        }
        Ok(())
    }

    /// ε of everything in the ledger at this δ, as a bracket by [`PldAccountant`].
    ///
    /// # Errors
    /// As [`PldAccountant::of`] and [`Accountant::epsilon`](crate::Accountant::epsilon).
    ///
    /// # Example
    /// ```
    /// use dp_accounting::{Delta, DpEvent, Ledger, NeighbouringRelation};
    /// let mut ledger = Ledger::new(NeighbouringRelation::AddRemove);
    /// ledger.record(&DpEvent::gaussian_at(5.0)?, 1)?; // class counts, once
    /// ledger.record(&DpEvent::gaussian_at(1.0)?.poisson_sampled_at(0.01)?, 1_000)?; // training
    /// let spent = ledger.epsilon(Delta::new(1e-5)?)?;
    /// assert!(spent.epsilon.get() < 2.1 && spent.lower.unwrap().get() > 1.9);
    /// # Ok::<(), dp_accounting::AccountingError>(())
    /// ```
    pub fn epsilon(&self, delta: Delta) -> Result<EpsilonBound, AccountingError> {
        PldAccountant::of(self)?.epsilon(delta)
    }

    /// Composes every entry into an accountant.
    ///
    /// # Errors
    /// [`AccountingError::RelationMismatch`] for an accountant of another relation, and the
    /// accountant's own.
    pub fn compose_into(&self, accountant: &mut impl Accountant) -> Result<(), AccountingError> {
        if accountant.relation() != self.relation {
            return Err(AccountingError::RelationMismatch { left: self.relation, right: accountant.relation() });
        }
        self.entries.iter().try_for_each(|entry| accountant.compose(&entry.event, entry.count))
    }
}

/// SHA-256 of the digest before, the event's canonical bytes and their number, and the count.
fn chained_digest(previous: &str, event: &DpEvent, count: u64) -> String {
    let event = canonical::bytes(event);
    let mut hasher = Sha256::new();
    hasher.update(previous.as_bytes());
    hasher.update((event.len() as u64).to_le_bytes());
    hasher.update(event);
    hasher.update(count.to_le_bytes());
    hexadecimal(&hasher.finalize())
}

fn hexadecimal(bytes: &[u8]) -> String {
    // Not by a format for each byte: a small step would spend a tenth of its time there.
    let digit = |digit: u8| char::from(b"0123456789abcdef"[usize::from(digit)]);
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}
