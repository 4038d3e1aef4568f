use super::*;
use basalt_types::{Epoch, TxnId};

impl Page {
    /// Asserts that the counters are what the records say.
    pub fn check(&self) {
        let mut counted = Page::default();
        let mut live = 0;
        for slot in 0..self.len() {
            let (_, record) = self.record(slot);
            counted.count_in(&record.header);
            live += record.size();
            assert_eq!(self.slots[slot] & MARK != 0, record.header.marked());
        }
        assert_eq!(live, self.live_bytes());
        assert_eq!(self.apart_bytes, self.apart.iter().map(|row| row.len()).sum::<usize>());
        let counts = |page: &Page| (page.undecided, page.odd, page.chained, page.marked);
        assert_eq!(counts(self), counts(&counted));
        assert!(self.least <= counted.least && self.greatest >= counted.greatest);
    }
}

fn header(stamp: Stamp) -> Header {
    Header { stamp, rid: 1, seq: 0, moved_at: None, deleted: false, undo: NONE }
}

#[test]
fn a_page_is_taken_whole_only_if_every_newest_version_is_seen_and_here() {
    let mut page = Page::default();
    page.insert(0, b"a", header(Stamp::version(Version(5))), Some(b"x"));
    page.insert(1, b"b", header(Stamp::version(Version(7))), Some(b"y"));
    assert!(page.wholly_visible(Version(7)) && !page.wholly_visible(Version(6)));
    assert!(page.wholly_invisible(Version(4)) && !page.wholly_invisible(Version(5)));
    let undecided = header(Stamp::txn(TxnId::new(Epoch(1), 1)));
    page.replace(1, Header { undo: 3, ..undecided }, Some(b"z"));
    assert!(!page.wholly_visible(Version::MAX) && !page.wholly_invisible(Version(4)));
    page.set_header(1, header(Stamp::version(Version(8))));
    assert!(page.wholly_visible(Version(8)));
    page.set_header(0, Header { moved_at: Some(ViewNo(2)), ..header(Stamp::version(Version(5))) });
    assert!(!page.wholly_visible(Version(8)));
    page.check();
}

#[test]
fn rows_change_size_in_place_at_the_end_and_apart() {
    let mut page = Page::default();
    page.insert(0, b"k", header(Stamp::version(Version(1))), Some(b"four"));
    page.insert(1, b"l", header(Stamp::version(Version(1))), Some(b"next"));
    let large = vec![9; ROW_INLINE_MAX + 1];
    for row in [&b"no"[..], b"four", b"longer", &large, &large[1..], b"", &large, b"end"] {
        page.replace(0, header(Stamp::version(Version(2))), Some(row));
        assert_eq!(page.entry(0).2, Some(row));
        assert_eq!((page.key(0), page.key(1), page.entry(1).2), (&b"k"[..], &b"l"[..], Some(&b"next"[..])));
        page.check();
    }
    page.replace(0, header(Stamp::version(Version(3))), None);
    assert_eq!(page.entry(0).2, None);
    page.compact();
    assert_eq!(page.live_bytes(), page.all_bytes());
    page.check();
}
