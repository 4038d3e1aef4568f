//! Which files to merge.
//!
//! Files that overlap in key range cost every lookup a probe each, and small files cost every scan a seek;
//! rewriting costs writes. Sizes are grouped by powers of four: four or more neighbours of one size class
//! merge into the next (a tiered scheme). A segment a quarter dead is rewritten alone, a row file of a table in rows when half
//! of it is: scans, which read dead rows too, are not what it is for, and the less is dead the more is written for what
//! is won (docs/decisions/0033).
//! Files that are as large as they should be are left alone: those of many rows, or of wide ones.
//!
//! Row files of a table of another orientation hold rows that were warm when memory was short. Their rows go on
//! changing, and each change leaves a dead one behind, so they are left alone until the youngest has cooled or all are
//! dead; then they become what the table's files are, even one alone. So do the oldest if too many have gathered.
//! Other files that are not of the table's orientation, compression or order, which was changed, or that lack what a new
//! index asks of them, are rewritten one by one when nothing else is to be done.

use crate::EngineConfig;
use crate::order::clustering_of;
use crate::tablet::FileEntry;
use basalt_cold::Segment;
use basalt_meta::{Catalog, FileKind};
use basalt_types::schema::FileIndexes;
use basalt_types::{ColumnId, TableDef, Version};
use std::sync::Arc;

const FAN_IN_MIN: usize = 4;
/// Warm row files of a tablet.
const WARM_FILES_MAX: usize = 8;
pub(super) const FAN_IN_MAX: usize = 8;

/// What the files of a table should be.
pub(super) struct Asked {
    kind: FileKind,
    zstd: bool,
    indexes: FileIndexes,
    clustering: Vec<ColumnId>,
}

impl Asked {
    pub fn of(table: &TableDef, catalog: &Catalog) -> Asked {
        let kind = catalog.file_kind(table);
        let (zstd, indexes) = (table.is_compressed(), table.file_indexes());
        Asked { kind, zstd, indexes, clustering: clustering_of(table, kind) }
    }

    fn suits(&self, file: &FileEntry) -> bool {
        self.has_content(file) && file.data.is_ordered(&self.clustering)
    }

    /// Whether a file is what it should be, in whatever order.
    fn has_content(&self, file: &FileEntry) -> bool {
        let suits = |segment: &Arc<Segment>| segment.is_zstd() == self.zstd && segment.has(&self.indexes);
        file.data.kind() == self.kind && file.data.segment().is_none_or(suits)
    }
}

/// A file and how many rows a merge would keep of it.
struct Candidate {
    file: Arc<FileEntry>,
    kept: u64,
}

impl Candidate {
    fn class(&self) -> u32 {
        self.kept.max(1).ilog(4)
    }
}

/// Files for one merge; empty if nothing is worth it. Dead are the rows whose deletion was folded: younger
/// marks are carried along, and merging for their sake would go on for as long as an old reader needs them.
/// Files are given in the order of their arrival; rows stamped ≤ `cool` have cooled.
pub(super) fn worth_merging(
    files: &[Arc<FileEntry>],
    asked: &Asked,
    config: &EngineConfig,
    cool: Version,
) -> Vec<Arc<FileEntry>> {
    let (settled, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| asked.suits(file));
    let (evicted, strange): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|file| file.data.kind() == FileKind::RowFile);
    let cooled = cooled(&evicted, cool);
    if !cooled.is_empty() {
        return cooled;
    }
    let mut small = Vec::new();
    for file in settled {
        let (rows, dead) = (u64::from(file.data.rows()), file.deletes.folded_count());
        let is_wide = file.data.is_wide(config.row_file_bytes());
        // One of so many.
        let dead_share = if file.data.kind() == FileKind::RowFile { 2 } else { 4 };
        if dead * dead_share >= rows && (rows >= 1024 || is_wide) {
            return vec![file.clone()];
        }
        if rows - dead < config.segment_rows && !is_wide {
            small.push(Candidate { file: file.clone(), kept: rows - dead });
        }
    }
    let least = |file: &FileEntry| file.data.order_range().map(|(least, _)| least.to_vec());
    small.sort_by_cached_key(|small| (small.class(), least(&small.file)));
    for group in small.chunk_by(|a, b| a.class() == b.class()) {
        if group.len() >= FAN_IN_MIN {
            return group.iter().take(FAN_IN_MAX).map(|small| small.file.clone()).collect();
        }
    }
    // Last, so that one that cannot be read is in nobody's way.
    strange.into_iter().take(1).cloned().collect()
}

/// Row files that are to become segments now.
fn cooled(row_files: &[&Arc<FileEntry>], cool: Version) -> Vec<Arc<FileEntry>> {
    let is_cool = |file: &FileEntry| {
        let dead = file.deletes.folded_count() == u64::from(file.data.rows());
        dead || file.data.greatest_stamp().is_none_or(|stamp| stamp <= cool)
    };
    let (cool, warm): (Vec<&Arc<FileEntry>>, Vec<_>) = row_files.iter().copied().partition(|file| is_cool(file));
    let chosen = if cool.is_empty() && warm.len() > WARM_FILES_MAX { warm } else { cool };
    chosen.into_iter().take(FAN_IN_MAX).cloned().collect()
}

/// Columnar files, each by itself, that are not what they should be; their order is not looked at.
pub(super) fn strange(files: &[Arc<FileEntry>], asked: &Asked) -> Vec<Arc<FileEntry>> {
    let is_strange = |file: &&Arc<FileEntry>| file.data.kind() != FileKind::RowFile && !asked.has_content(file);
    files.iter().filter(is_strange).cloned().collect()
}

/// Files that are not in the order that is asked for, each by itself: together they cannot be merged piece by piece.
pub(super) fn out_of_order(files: &[Arc<FileEntry>], asked: &Asked) -> Vec<Arc<FileEntry>> {
    files.iter().filter(|file| !file.data.is_ordered(&asked.clustering)).cloned().collect()
}

/// Everything but what is as it should be, in groups whose ranges do not meet where possible: files are taken in their
/// order and a group is closed where the next file starts above all before it.
pub(super) fn whole_tablet(files: &[Arc<FileEntry>], asked: &Asked) -> Vec<Vec<Arc<FileEntry>>> {
    let mut sorted: Vec<_> = files.iter().filter(|file| file.data.order_range().is_some()).cloned().collect();
    sorted.sort_by(|a, b| a.data.order_range().cmp(&b.data.order_range()));
    let mut groups: Vec<Vec<Arc<FileEntry>>> = Vec::new();
    let mut greatest = None;
    for file in sorted {
        let (least, last) = file.data.order_range().expect("filtered");
        let (last, apart) = (last.to_vec(), greatest.as_deref().is_none_or(|greatest| greatest < least));
        match groups.last_mut() {
            Some(group) if !apart || group.len() < FAN_IN_MAX => group.push(file),
            _ => groups.push(vec![file]),
        }
        greatest = greatest.max(Some(last));
    }
    groups.retain(|group| group.len() > 1 || group[0].deletes.count() > 0 || !asked.suits(&group[0]));
    groups
}
