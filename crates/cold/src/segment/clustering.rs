//! What a file says of the order of its rows if that is not the order of their keys. Zone maps tell readers all that
//! follows from it; the section is for whoever merges files.

use crate::Result;
use crate::encoding::{Damage, Decoded, take_array, take_varint};
use crate::frame::{SECTION_CLUSTERING, Section};
use crate::store::FileSink;
use basalt_types::{ColumnId, varint};

/// Rows lie in the order of some columns, equal ones in the order of their keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clustering {
    pub columns: Vec<ColumnId>,
    /// Of the first row, as bytes that compare as rows are ordered, or the beginning of that.
    pub least: Vec<u8>,
    /// Of the last row.
    pub greatest: Vec<u8>,
}

/// Bytes that are kept of an order key.
const KEPT_BYTES: usize = 256;

impl Clustering {
    /// `columns varint | id u16… | least | greatest`, these two behind their lengths.
    pub(super) fn write(&self, sink: &mut FileSink) -> Result<Section> {
        let mut out = Vec::new();
        varint::put(&mut out, self.columns.len() as u64);
        self.columns.iter().for_each(|column| out.extend_from_slice(&column.0.to_le_bytes()));
        for key in [&self.least, &self.greatest] {
            varint::put_slice(&mut out, &key[..key.len().min(KEPT_BYTES)]);
        }
        Section::write(sink, SECTION_CLUSTERING, 1, &[], out)
    }

    pub(super) fn among(sections: &[Section]) -> Decoded<Option<Clustering>> {
        let section = sections.iter().find(|section| section.kind == SECTION_CLUSTERING);
        section.map(|section| Clustering::decode(&section.extra)).transpose()
    }

    fn decode(mut input: &[u8]) -> Decoded<Clustering> {
        const WHAT: Damage = Damage("the clustering of a file");
        let input = &mut input;
        let count = take_varint(input, WHAT.0)?;
        let column = |_| Ok(ColumnId(u16::from_le_bytes(take_array(input, WHAT.0)?)));
        let columns = (0..count).map(column).collect::<Decoded<Vec<_>>>()?;
        let mut key = || varint::take_slice(input).map(<[u8]>::to_vec).ok_or(WHAT);
        let (least, greatest) = (key()?, key()?);
        match input.is_empty() && !columns.is_empty() {
            true => Ok(Clustering { columns, least, greatest }),
            false => Err(WHAT),
        }
    }
}
