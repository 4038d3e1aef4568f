//! A column of a block of rows as it comes from storage: values in stored form, or codes of a dictionary.

use arrow_array::{Array, ArrayRef, BinaryViewArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use std::sync::Arc;

/// One column of a block.
#[derive(Clone, Debug)]
pub enum Vector {
    /// One stored value per row ([`PhysType::to_arrow`](crate::PhysType::to_arrow)).
    Flat(ArrayRef),
    Codes(Codes),
}

/// One place in a dictionary per row.
#[derive(Clone, Debug)]
pub struct Codes {
    /// Each below the dictionary's length, those of nulls too, unless that is empty.
    pub codes: ScalarBuffer<u32>,
    pub nulls: Option<NullBuffer>,
    /// Distinct byte strings without nulls, ascending.
    pub dictionary: Arc<BinaryViewArray>,
}

impl Vector {
    pub fn len(&self) -> usize {
        match self {
            Vector::Flat(values) => values.len(),
            Vector::Codes(codes) => codes.codes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One stored value per row.
    pub fn to_array(&self) -> ArrayRef {
        match self {
            Vector::Flat(values) => values.clone(),
            Vector::Codes(codes) => Arc::new(codes.to_array()),
        }
    }
}

impl Codes {
    /// Those at some positions, in their order.
    ///
    /// # Panics
    /// If a position is not below the length.
    pub fn take(&self, rows: &[u32]) -> Codes {
        let codes = rows.iter().map(|row| self.codes[*row as usize]).collect();
        let valid = |nulls: &NullBuffer| rows.iter().map(|row| nulls.is_valid(*row as usize)).collect();
        let nulls = self.nulls.as_ref().map(valid);
        Codes { codes, nulls, dictionary: self.dictionary.clone() }
    }

    fn to_array(&self) -> BinaryViewArray {
        let distinct = self.dictionary.views();
        let views: ScalarBuffer<u128> = match distinct.is_empty() {
            true => vec![0; self.codes.len()].into(),
            false => self.codes.iter().map(|code| distinct[*code as usize]).collect(),
        };
        let buffers = self.dictionary.data_buffers().to_vec();
        BinaryViewArray::try_new(views, buffers, self.nulls.clone()).expect("views of the dictionary's own buffers")
    }
}

#[cfg(test)]
mod tests;
