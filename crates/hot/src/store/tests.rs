use super::*;

impl Store {
    /// Asserts the invariants of the pages: links, order, index, totals, marks.
    pub fn check(&self) {
        let (mut at, mut prev) = (self.first, NONE);
        let (mut pages, mut keys, mut rows, mut bytes) = (0, 0, 0, 0);
        let mut last: Option<Vec<u8>> = None;
        while at != NONE {
            let page = &self.pages[at];
            assert_eq!(page.prev, prev);
            assert!(page.len() > 0 || self.pages.len() == 1, "only a sole page is empty");
            for slot in 0..page.len() {
                let key = page.key(slot);
                assert!(last.as_deref().is_none_or(|last| last < key), "keys ascend");
                assert_eq!(self.locate(key), Ok(Place { page: at, slot }));
                last = Some(key.to_vec());
            }
            page.check();
            let weight = page.weight();
            (keys, rows, bytes) = (keys + weight.keys, rows + weight.rows, bytes + weight.bytes);
            pages += 1;
            (prev, at) = (at, page.next);
        }
        assert_eq!((prev, pages), (self.last, self.pages.len()));
        assert_eq!((keys, rows, bytes), (self.total.keys, self.total.rows, self.total.bytes));
    }
}
