//! Types of `$n`: given by the client, or taken from the context of the first use.

use crate::error::{Result, SqlError};
use basalt_expr::EvalContext;
use basalt_expr::context::LiteralStyle;
use basalt_types::DataType;
use std::sync::Arc;

/// `Unknown` is a type still open. Parameters count from 0 here and from 1 in SQL.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ParamTypes {
    types: Vec<DataType>,
    /// How many of them are.
    unknown: usize,
    /// Whether a parameter beyond the given ones may appear (PREPARE and Parse: yes).
    open: bool,
    /// What literals were read by when the statement was prepared.
    style: Option<LiteralStyle>,
}

impl ParamTypes {
    /// A statement without parameters: `$1` is 42P02.
    pub fn none() -> ParamTypes {
        ParamTypes::default()
    }

    /// A statement to prepare: any parameter may appear, those listed with the type given.
    pub fn open(types: Vec<DataType>) -> ParamTypes {
        ParamTypes { unknown: unknown(&types), types, open: true, style: None }
    }

    /// A prepared statement that is bound again. Its literals mean what they meant, as PostgreSQL's do, whatever has been
    /// set since.
    pub fn fixed(types: Vec<DataType>, style: Option<LiteralStyle>) -> ParamTypes {
        ParamTypes { unknown: unknown(&types), types, open: false, style }
    }

    /// A context in which its literals are read.
    pub fn reading(&self, eval: Arc<EvalContext>) -> Arc<EvalContext> {
        match self.style {
            Some(style) if style != eval.style() => {
                Arc::new(EvalContext { literal_style: Some(style), ..EvalContext::clone(&eval) })
            }
            _ => eval,
        }
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
