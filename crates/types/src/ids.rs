//! Identities. Each is a newtype so that a tablet can never be taken for a table.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// Any catalog object. Also its PostgreSQL `oid`: user objects start at 16384 as there.
    ObjectId(u32), "o"
);
id!(
    /// One shard of a table, written by one owner. Never reused: TRUNCATE makes new tablets.
    TabletId(u32), "t"
);
id!(
    /// A column of one table, counted from 1 and never reused: files and rows store it.
    ColumnId(u16), "c"
);
id!(
    /// Row id inside a tablet, in arrival order. A table without a key uses it as its hidden key.
    Rid(u64), "r"
);
id!(
    /// Byte position in the log. LSNs are assigned under the log lock, so log order is commit order.
    Lsn(u64), "lsn"
);
id!(
    /// One start of the engine. Made durable before anything of that start is written.
    Epoch(u32), "e"
);
id!(
    /// Serial number of a tablet's read view; a move belongs to the first view that sees the new place.
    ViewNo(u64), "v"
);

impl ColumnId {
    /// Where this column stands in a row of its table: rows keep all columns ever defined, in id order.
    pub fn position(self) -> usize {
        usize::from(self.0) - 1
    }

    pub fn from_position(position: usize) -> ColumnId {
        ColumnId(u16::try_from(position + 1).expect("a table has at most 1600 columns"))
    }
}

/// Names one immutable file. The epoch in it lets recovery delete what an earlier start left unlisted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct FileId {
    pub epoch: Epoch,
    pub serial: u32,
}

impl FileId {
    pub fn to_u64(self) -> u64 {
        u64::from(self.epoch.0) << 32 | u64::from(self.serial)
    }

    pub fn from_u64(raw: u64) -> FileId {
        FileId { epoch: Epoch((raw >> 32) as u32), serial: raw as u32 }
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{:08x}", self.epoch.0, self.serial)
    }
}
