//! Footer.

use super::ZoneMap;
use basalt_types::{ColumnId, Version};

pub struct RowGroup {
    pub first_ordinal: u32,
    pub rows: u32,
    pub stamp_range: Option<(Version, Version)>,
}

impl RowGroup {
    pub fn zone_map(&self, _column: ColumnId) -> Option<&ZoneMap> {
        unimplemented!()
    }
}
