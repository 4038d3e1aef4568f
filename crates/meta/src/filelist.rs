//! What a checkpoint and a commit record say of a file.

use basalt_types::schema::Orientation;
use basalt_types::{FileId, Version};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FileKind {
    Segment,
    RowFile,
    /// A segment and a row file of one id: the same rows at the same ordinals.
    Pair,
}

impl FileKind {
    /// What holds the cold rows of a table.
    pub fn of(orientation: Orientation) -> FileKind {
        match orientation {
            Orientation::Column => FileKind::Segment,
            Orientation::Row => FileKind::RowFile,
            Orientation::RowAndColumn => FileKind::Pair,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            FileKind::Segment => "segment",
            FileKind::RowFile => "row file",
            FileKind::Pair => "segment and row file",
        }
    }
}

/// Whose the rows of a file are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FileStamps {
    /// All rows carry one version: that of the commit that registered the file.
    Uniform(Version),
    /// The file has a version column.
    PerRow,
}

/// One file of one tablet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileInfo {
    pub id: FileId,
    pub kind: FileKind,
    pub rows: u64,
    pub bytes: u64,
    pub stamps: FileStamps,
}
