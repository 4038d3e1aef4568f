//! The checkpoint file: catalog, file lists, delete maps.
//!
//! ```text
//! magic "BASALTCP" | format u32 | head length u32 | head JSON | delete maps … | crc32c u32
//! ```
//!
//! The head lists for each file the length of its delete map; the maps follow in the order of the list.

use crate::{Catalog, Error, Result};
use basalt_meta::{FileInfo, SequenceValue};
use basalt_types::{Lsn, ObjectId, Rid, TabletId, Version};
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 8] = b"BASALTCP";
const FORMAT: u32 = 1;

/// A checkpoint in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Body {
    pub version: Version,
    pub next_object: u32,
    pub next_tablet: u32,
    pub catalog: Catalog,
    pub tablets: Vec<TabletBody>,
    pub sequences: Vec<SequenceBody>,
}

/// Where a sequence's state goes on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SequenceBody {
    pub state: ObjectId,
    pub value: SequenceValue,
    /// Records below this are no news.
    pub logged_at: Lsn,
}

#[derive(Clone, PartialEq, Debug)]
pub struct TabletBody {
    pub id: TabletId,
    pub next_rid: Rid,
    /// Row file with the hot rows.
    pub hot: Option<FileInfo>,
    pub files: Vec<ListedFile>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ListedFile {
    pub info: FileInfo,
    /// A `DeleteMap`'s bytes; empty if nothing is deleted.
    pub deletes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    version: Version,
    next_object: u32,
    next_tablet: u32,
    catalog: Catalog,
    tablets: Vec<HeadTablet>,
    #[serde(default)]
    sequences: Vec<SequenceBody>,
}

#[derive(Serialize, Deserialize)]
struct HeadTablet {
    id: TabletId,
    next_rid: Rid,
    hot: Option<FileInfo>,
    files: Vec<(FileInfo, u32)>,
}

impl Body {
    pub fn encode(&self) -> Vec<u8> {
        let tablet = |tablet: &TabletBody| HeadTablet {
            id: tablet.id,
            next_rid: tablet.next_rid,
            hot: tablet.hot.clone(),
            files: tablet.files.iter().map(|file| (file.info.clone(), file.deletes.len() as u32)).collect(),
        };
        let head = Head {
            version: self.version,
            next_object: self.next_object,
            next_tablet: self.next_tablet,
            catalog: self.catalog.clone(),
            tablets: self.tablets.iter().map(tablet).collect(),
            sequences: self.sequences.clone(),
        };
        let head = serde_json::to_vec(&head).expect("plain data");
        let mut out = Vec::with_capacity(head.len() + 64);
        out.extend_from_slice(MAGIC);
        out.extend(FORMAT.to_le_bytes());
        out.extend((head.len() as u32).to_le_bytes());
        out.extend_from_slice(&head);
        for tablet in &self.tablets {
            tablet.files.iter().for_each(|file| out.extend_from_slice(&file.deletes));
        }
        out.extend(crc32c::crc32c(&out).to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8], path: &str) -> Result<Body> {
        let corrupt = |what: String| Error::Corrupt(format!("{path}: {what}"));
        if bytes.len() < 20 || &bytes[..8] != MAGIC {
            return Err(corrupt("not a checkpoint file".into()));
        }
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let (content, _) = bytes.split_at(bytes.len() - 4);
        let (stored, computed) = (word(bytes.len() - 4), crc32c::crc32c(content));
        if stored != computed {
            return Err(corrupt(format!("checksum mismatch: stored {stored:#010x}, computed {computed:#010x}")));
        }
        if word(8) > FORMAT {
            return Err(corrupt(format!("checkpoint format {}, this program reads up to {FORMAT}", word(8))));
        }
        let head_end = (word(12) as usize).checked_add(16).filter(|end| *end <= content.len());
        let head_end = head_end.ok_or_else(|| corrupt("the head is longer than the file".into()))?;
        let head: Head = serde_json::from_slice(&content[16..head_end])
            .map_err(|error| corrupt(format!("the head cannot be read: {error}")))?;
        let mut maps = &content[head_end..];
        let mut tablets = Vec::with_capacity(head.tablets.len());
        for tablet in head.tablets {
            let mut files = Vec::with_capacity(tablet.files.len());
            for (info, deletes_bytes) in tablet.files {
                let deletes = basalt_types::varint::take_bytes(&mut maps, deletes_bytes as usize)
                    .ok_or_else(|| corrupt(format!("the delete map of {} is cut", info.id)))?;
                files.push(ListedFile { info, deletes: deletes.to_vec() });
            }
            tablets.push(TabletBody { id: tablet.id, next_rid: tablet.next_rid, hot: tablet.hot, files });
        }
        if !maps.is_empty() {
            return Err(corrupt(format!("{} bytes behind the last delete map", maps.len())));
        }
        let mut catalog = head.catalog;
        catalog.index();
        let (next_object, next_tablet) = (head.next_object, head.next_tablet);
        let (version, sequences) = (head.version, head.sequences);
        Ok(Body { version, next_object, next_tablet, catalog, tablets, sequences })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_round_trip_and_damage_is_noticed() {
        let body = Body {
            version: Version(9),
            next_object: 16400,
            next_tablet: 3,
            catalog: Catalog::initial(),
            tablets: vec![TabletBody { id: TabletId(1), next_rid: Rid(8), hot: None, files: Vec::new() }],
            sequences: vec![SequenceBody {
                state: ObjectId(16399),
                value: SequenceValue { last: 32, is_called: true },
                logged_at: Lsn(77),
            }],
        };
        let bytes = body.encode();
        let again = Body::decode(&bytes, "x").unwrap();
        assert_eq!((again.version, again.tablets.clone()), (body.version, body.tablets.clone()));
        assert_eq!(again.sequences, body.sequences);
        for at in (0..bytes.len()).step_by(7) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            assert!(Body::decode(&bad, "x").is_err(), "byte {at}");
        }
    }
}
