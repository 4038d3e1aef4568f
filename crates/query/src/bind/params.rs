//! Types of `$n`: given by the client, or taken from the context of the first use.

use crate::error::{Result, SqlError};
use basalt_types::DataType;

/// `Unknown` is a type still open. Parameters count from 0 here and from 1 in SQL.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ParamTypes {
    types: Vec<DataType>,
    /// How many of them are.
    unknown: usize,
    /// Whether a parameter beyond the given ones may appear (PREPARE and Parse: yes).
    open: bool,
}

impl ParamTypes {
    /// A statement without parameters: `$1` is 42P02.
    pub fn none() -> ParamTypes {
        ParamTypes::default()
    }

    /// A statement to prepare: any parameter may appear, those listed with the type given.
    pub fn open(types: Vec<DataType>) -> ParamTypes {
        ParamTypes { unknown: unknown(&types), types, open: true }
    }

    /// A prepared statement that is bound again.
    pub fn fixed(types: Vec<DataType>) -> ParamTypes {
        ParamTypes { unknown: unknown(&types), types, open: false }
    }

    /// The type of a parameter, `Unknown` while open.
    pub fn get(&mut self, index: usize) -> Result<DataType> {
        if index >= self.types.len() {
            if !self.open || index >= usize::from(u16::MAX) {
                return Err(SqlError::new("42P02", format!("there is no parameter ${}", index + 1)));
            }
            self.unknown += index + 1 - self.types.len();
            self.types.resize(index + 1, DataType::Unknown);
        }
        Ok(self.types[index].clone())
    }

    /// Settles an open parameter.
    pub fn settle(&mut self, index: usize, ty: &DataType) {
        if self.types[index] == DataType::Unknown && *ty != DataType::Unknown {
            self.types[index] = ty.clone();
            self.unknown -= 1;
        }
    }

    /// Whether the type of some parameter is still to be found out.
    pub fn are_open(&self) -> bool {
        self.unknown > 0
    }

    /// All types after binding. 42P18 if one could not be determined.
    pub fn finish(self) -> Result<Vec<DataType>> {
        match self.types.iter().position(|ty| *ty == DataType::Unknown) {
            Some(index) => {
                Err(SqlError::new("42P18", format!("could not determine data type of parameter ${}", index + 1)))
            }
            None => Ok(self.types),
        }
    }
}

fn unknown(types: &[DataType]) -> usize {
    types.iter().filter(|ty| **ty == DataType::Unknown).count()
}
