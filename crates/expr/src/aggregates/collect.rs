//! `array_agg` and `string_agg`: aggregates that keep their input, in the order in which it comes.

use super::{Binding, GroupsAccumulator};
use crate::array_value;
use crate::error::{Error, Result};
use crate::eval::vector::{VectorBuilder, value_at};
use arrow_array::{ArrayRef, BooleanArray};
use basalt_types::{DataType, Datum};

pub(super) fn bind(name: &str, args: &str) -> Option<Binding> {
    Some(match (name, args) {
        ("array_agg", "anynonarray") => (
            |args, ty| Box::new(Collect { types: args.to_vec(), ty: ty.clone(), form: Form::Array, kept: Vec::new() }),
            |args, _| vec![DataType::Array(Box::new(args[0].clone()))],
        ),
        ("array_agg", "anyarray") => (
            |args, ty| Box::new(Collect { types: args.to_vec(), ty: ty.clone(), form: Form::Nested, kept: Vec::new() }),
            // Each array as it rests, wrapped into a row: arrays have no arrays as elements.
            |args, _| vec![DataType::Array(Box::new(wrapped(&args[0])))],
        ),
        ("string_agg", _) => (
            |args, ty| Box::new(Collect { types: args.to_vec(), ty: ty.clone(), form: Form::Joined, kept: Vec::new() }),
            |args, _| args.iter().map(|ty| DataType::Array(Box::new(ty.clone()))).collect(),
        ),
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Array,
    /// One array with a dimension more than its parts.
    Nested,
    /// Values with their delimiters between; the first delimiter is not used.
    Joined,
}

struct Collect {
    types: Vec<DataType>,
    ty: DataType,
    form: Form,
    /// Per group and argument, the values; `None` before the first.
    kept: Vec<Option<Vec<Vec<Datum>>>>,
}

impl Collect {
    fn add(&mut self, group: usize, values: impl Iterator<Item = Datum>) {
        let columns = self.kept[group].get_or_insert_with(|| vec![Vec::new(); self.types.len()]);
        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }

    fn result(&self, columns: &[Vec<Datum>]) -> Result<Datum> {
        match self.form {
            Form::Array => array_value::encode(&self.types[0], &columns[0]),
            Form::Nested => nested(&self.types[0], &columns[0]),
            Form::Joined => {
                let mut out = Vec::new();
                for (at, (value, delimiter)) in columns[0].iter().zip(&columns[1]).enumerate() {
                    if let (Datum::Bytes(delimiter), true) = (delimiter, at > 0) {
                        out.extend_from_slice(delimiter);
                    }
                    if let Datum::Bytes(value) = value {
                        out.extend_from_slice(value);
                    }
                }
                Ok(Datum::Bytes(out.into()))
            }
        }
    }
}

/// An element type under which arrays rest as they are.
fn wrapped(ty: &DataType) -> DataType {
    if ty.element().is_some() { DataType::Bytea } else { ty.clone() }
}

fn nested(ty: &DataType, arrays: &[Datum]) -> Result<Datum> {
    let element = ty.element().unwrap_or(ty);
    if arrays.iter().any(Datum::is_null) {
        return Err(Error::new("22004", "cannot accumulate null arrays"));
    }
    for array in arrays {
        if let Datum::Bytes(bytes) = array
            && array_value::elements(element, bytes)?.is_empty()
        {
            return Err(Error::new("2202E", "cannot accumulate empty arrays"));
        }
    }
    let whole = array_value::nest(element, arrays).map_err(|error| match error.sqlstate {
        "2202E" => Error::new("2202E", "cannot accumulate arrays of different dimensionality"),
        _ => error,
    })?;
    array_value::encode_shaped(element, &whole)
}

impl GroupsAccumulator for Collect {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.kept.resize(total_groups, None);
        let types = self.types.clone();
        let filter = filter.map(crate::eval::is_true);
        for (row, group) in groups.iter().enumerate() {
            let left_out = filter.as_ref().is_some_and(|filter| !filter.value(row));
            if left_out || (self.form == Form::Joined && args[0].is_null(row)) {
                continue;
            }
            let values = types.iter().zip(args).map(|(ty, arg)| value_at(ty, arg.as_ref(), row));
            self.add(*group as usize, values);
        }
        Ok(())
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.kept.resize(total_groups, None);
        for (row, group) in groups.iter().enumerate() {
            let mut columns = Vec::with_capacity(states.len());
            for (ty, state) in self.types.iter().zip(states) {
                let ty = &wrapped(ty);
                let array_ty = DataType::Array(Box::new(ty.clone()));
                if let Datum::Bytes(bytes) = value_at(&array_ty, state.as_ref(), row) {
                    columns.push(array_value::elements(ty, &bytes)?);
                }
            }
            if columns.len() == self.types.len() {
                let all = self.kept[*group as usize].get_or_insert_with(|| vec![Vec::new(); columns.len()]);
                all.iter_mut().zip(columns).for_each(|(all, column)| all.extend(column));
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let kept = std::mem::take(&mut self.kept);
        let column = |at: usize, ty: &DataType| -> Result<ArrayRef> {
            let ty = &wrapped(ty);
            let mut builder = VectorBuilder::new(&DataType::Array(Box::new(ty.clone())), kept.len());
            for columns in &kept {
                match columns {
                    Some(columns) => builder.push(&array_value::encode(ty, &columns[at])?)?,
                    None => builder.skip(),
                }
            }
            builder.finish()
        };
        self.types.iter().enumerate().map(|(at, ty)| column(at, ty)).collect()
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&self.ty, self.kept.len());
        for columns in &self.kept {
            match columns {
                Some(columns) => builder.push(&self.result(columns)?)?,
                None => builder.skip(),
            }
        }
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        let values = self.kept.iter().flatten().flatten().flatten();
        let heap =
            values.map(|value| size_of::<Datum>() + if let Datum::Bytes(bytes) = value { bytes.len() } else { 0 });
        heap.sum::<usize>() + self.kept.capacity() * size_of::<Option<Vec<Vec<Datum>>>>()
    }
}
