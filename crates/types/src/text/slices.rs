//! A column of texts that are parts of another column's texts: it shows where they lie, and copies none of them.

use super::INLINE_BYTES_MAX;
use super::view::view as view_of;
use arrow_array::BinaryViewArray;
use arrow_buffer::{Buffer, NullBufferBuilder};

/// Where the offset and the buffer's number stand in a view (Arrow columnar format, "Variable-size Binary View Layout").
const BUFFER_SHIFT: u32 = 64;
const OFFSET_SHIFT: u32 = 96;
/// Bytes that lie in no source are gathered in blocks of this size.
const BLOCK_BYTES: usize = 1 << 18;

/// Collects parts of a column's values, and what is made anew between them.
pub struct Slices<'s> {
    source: &'s BinaryViewArray,
    views: Vec<u128>,
    nulls: NullBufferBuilder,
    /// Behind the buffers of the source.
    blocks: Vec<Vec<u8>>,
}

impl<'s> Slices<'s> {
    pub fn of(source: &'s BinaryViewArray, capacity: usize) -> Slices<'s> {
        let nulls = NullBufferBuilder::new(capacity);
        Slices { source, views: Vec::with_capacity(capacity), nulls, blocks: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.views.len()
    }

    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    pub fn push_null(&mut self) {
        self.views.push(0);
        self.nulls.append_null();
    }

    /// A part of the source's value in a row; bytes that lie elsewhere are copied.
    #[inline]
    pub fn push(&mut self, row: usize, part: &[u8]) {
        if part.len() <= INLINE_BYTES_MAX {
            self.nulls.append_non_null();
            return self.views.push(view_of(part, 0, 0));
        }
        let whole = self.source.value(row);
        let before = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        if before.checked_add(part.len()).is_none_or(|end| end > whole.len()) {
            return self.push_copy(part);
        }
        // A value that has so long a part lies in a buffer.
        let view = self.source.views()[row];
        let (buffer, offset) = ((view >> BUFFER_SHIFT) as u32, (view >> OFFSET_SHIFT) as u32);
        self.nulls.append_non_null();
        self.views.push(view_of(part, buffer, offset + before as u32));
    }

    /// Bytes that are no part of the source.
    pub fn push_copy(&mut self, bytes: &[u8]) {
        self.nulls.append_non_null();
        if bytes.len() <= INLINE_BYTES_MAX {
            return self.views.push(view_of(bytes, 0, 0));
        }
        if self.blocks.last().is_none_or(|block| block.len() + bytes.len() > block.capacity()) {
            self.blocks.push(Vec::with_capacity(BLOCK_BYTES.max(bytes.len())));
        }
        let number = (self.source.data_buffers().len() + self.blocks.len() - 1) as u32;
        let block = self.blocks.last_mut().expect("it has just been made");
        self.views.push(view_of(bytes, number, block.len() as u32));
        block.extend_from_slice(bytes);
    }

    pub fn finish(mut self) -> BinaryViewArray {
        let own = self.blocks.into_iter().map(Buffer::from);
        let buffers: Vec<Buffer> = self.source.data_buffers().iter().cloned().chain(own).collect();
        let nulls = self.nulls.finish();
        assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == self.views.len()), "a bit for each row");
        #[allow(unsafe_code)]
        // SAFETY: each view is of no bytes, has all of them, or shows a part of what one of the source's views shows, or
        // what was put into a block at that place.
        unsafe {
            BinaryViewArray::new_unchecked(self.views.into(), buffers, nulls)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn parts_are_shown_where_they_lie_and_the_rest_is_copied() {
        let texts = ["short", "a text that is longer than a view", "another one that is longer than a view", ""];
        let source =
            BinaryViewArray::from_iter_values(texts.iter().map(|text| text.as_bytes()).chain([b"x".as_slice()]));
        let mut slices = Slices::of(&source, 0);
        let mut expected: Vec<Option<Vec<u8>>> = Vec::new();
        for row in 0..source.len() {
            let value = source.value(row);
            for from in 0..=value.len() {
                slices.push(row, &value[from..]);
                slices.push(row, &value[..from]);
                expected.extend([Some(value[from..].to_vec()), Some(value[..from].to_vec())]);
            }
            slices.push_null();
            slices.push(row, b"of no row, and too long to stand in a view");
            slices.push_copy(&b"long".repeat(row * BLOCK_BYTES / 8));
            expected.push(None);
            expected.push(Some(b"of no row, and too long to stand in a view".to_vec()));
            expected.push(Some(b"long".repeat(row * BLOCK_BYTES / 8)));
        }
        assert_eq!(slices.len(), expected.len());
        let found = slices.finish();
        assert_eq!(found.iter().map(|value| value.map(<[u8]>::to_vec)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_slice_of_a_column_is_a_source_too() {
        let all = BinaryViewArray::from_iter_values([b"the first text of the column", b"and this is the second one.."]);
        let source = all.slice(1, 1);
        let mut slices = Slices::of(&source, 1);
        slices.push(0, &source.value(0)[4..20]);
        assert_eq!(slices.finish().value(0), b"this is the seco");
    }
}
