//! What a checkpoint and a commit record say of a file.

use basalt_types::{FileId, Version};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FileKind {
    Segment,
    RowFile,
}

impl FileKind {
    pub fn name(self) -> &'static str {
        match self {
            FileKind::Segment => "segment",
            FileKind::RowFile => "row file",
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
