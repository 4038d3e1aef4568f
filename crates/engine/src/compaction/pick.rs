//! Which files to merge.
//!
//! Files that overlap in key range cost every lookup a probe each, and small files cost every scan a seek;
//! rewriting costs writes. Sizes are grouped by powers of four: four or more neighbours of one size class
//! merge into the next (a tiered scheme). A file a quarter dead is rewritten alone.

use crate::tablet::FileEntry;
use std::sync::Arc;

const FAN_IN_MIN: usize = 4;
pub(super) const FAN_IN_MAX: usize = 8;

fn dead_share(file: &FileEntry) -> f64 {
    file.deletes.count() as f64 / f64::from(file.segment.rows().max(1))
}

fn class(file: &FileEntry) -> u32 {
    file.unmarked_rows().max(1).ilog(4)
}

/// Files for one merge; empty if nothing is worth it.
pub(super) fn worth_merging(files: &[Arc<FileEntry>], segment_rows: u64) -> Vec<Arc<FileEntry>> {
    if let Some(file) = files.iter().find(|file| dead_share(file) >= 0.25 && file.segment.rows() >= 1024) {
        return vec![file.clone()];
    }
    let mut small: Vec<_> = files.iter().filter(|file| file.unmarked_rows() < segment_rows).cloned().collect();
    small.sort_by_key(|file| (class(file), file.segment.key_range().map(|(least, _)| least.clone())));
    for group in small.chunk_by(|a, b| class(a) == class(b)) {
        if group.len() >= FAN_IN_MIN {
            return group.iter().take(FAN_IN_MAX).cloned().collect();
        }
    }
    Vec::new()
}

/// Everything, in groups whose key ranges do not meet where possible: files are taken in key order and a
/// group is closed where the next file starts above all before it.
pub(super) fn whole_tablet(files: &[Arc<FileEntry>]) -> Vec<Vec<Arc<FileEntry>>> {
    let mut sorted: Vec<_> = files.iter().filter(|file| file.segment.key_range().is_some()).cloned().collect();
    sorted.sort_by(|a, b| a.segment.key_range().cmp(&b.segment.key_range()));
    let mut groups: Vec<Vec<Arc<FileEntry>>> = Vec::new();
    let mut greatest = None;
    for file in sorted {
        let (least, last) = file.segment.key_range().expect("filtered").clone();
        let apart = greatest.as_ref().is_none_or(|greatest| *greatest < least);
        match groups.last_mut() {
            Some(group) if !apart || group.len() < FAN_IN_MAX => group.push(file),
            _ => groups.push(vec![file]),
        }
        greatest = greatest.max(Some(last));
    }
    groups.retain(|group| group.len() > 1 || group[0].deletes.count() > 0);
    groups
}
