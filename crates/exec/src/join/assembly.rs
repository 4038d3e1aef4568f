//! A table that several threads make: its keys and each of its columns are jobs, of which whoever is free does the next one.

use super::concat::concat;
use super::{Building, Placed, Table};
use crate::error::Result;
use crate::gather::taken;
use basalt_types::vector::Vector;
use std::sync::{Arc, Mutex, PoisonError};

/// From so many rows on it is worth it to wake another thread.
const ROWS_MIN: usize = 1 << 15;
/// Of more, a job would keep its processor for longer than others should wait: one thread has to do.
const ROWS_MAX: usize = 1 << 19;

pub struct Assembly {
    spec: Arc<super::Spec>,
    rows: usize,
    open: Mutex<Vec<Job>>,
    done: Mutex<Done>,
}

type Job = Box<dyn FnOnce() -> Result<Part> + Send>;

enum Part {
    Keys(Box<Placed>),
    Column(usize, Vector),
}

#[derive(Default)]
struct Done {
    placed: Option<Box<Placed>>,
    columns: Vec<Option<Vector>>,
}

/// What follows when all jobs have ended.
pub enum Next {
    Table(Box<Table>),
    Jobs(Assembly),
}

impl Building {
    /// What it takes of memory that its columns are not put together one by one, if several threads should do that.
    pub fn assembly_bytes(&self) -> Option<usize> {
        let is_worth_it = (ROWS_MIN..=ROWS_MAX).contains(&self.rows) && !self.spec.keys.is_empty();
        (is_worth_it && !self.spec.fields.is_empty()).then(|| self.column_bytes.iter().sum())
    }

    /// As [`Building::finish`], job by job.
    pub fn assembly(mut self) -> Result<Assembly> {
        self.put_in_order()?;
        let Building { spec, mut parts, rows, .. } = self;
        let mut columns: Vec<Vec<Vector>> = spec.fields.iter().map(|_| Vec::with_capacity(parts.len())).collect();
        for part in &mut parts {
            columns.iter_mut().zip(part.payload.drain(..)).for_each(|(column, own)| column.push(own));
        }
        // What was put together is let go of by whoever did it: there are many pieces.
        let column = |(at, column): (usize, Vec<Vector>)| -> Job {
            let field = spec.fields[at].clone();
            Box::new(move || Ok(Part::Column(at, concat(&column.iter().collect::<Vec<_>>(), &field)?)))
        };
        let mut open: Vec<Job> = columns.into_iter().enumerate().map(column).collect();
        let of_keys = spec.clone();
        // The last one, and as a rule the longest, is the first to be taken.
        open.push(Box::new(move || Ok(Part::Keys(Box::new(Placed::of(&of_keys, &parts, rows)?)))));
        Ok(Assembly::new(spec, rows, open, None))
    }
}

impl Assembly {
    fn new(spec: Arc<super::Spec>, rows: usize, open: Vec<Job>, placed: Option<Box<Placed>>) -> Assembly {
        let columns = spec.fields.iter().map(|_| None).collect();
        Assembly { spec, rows, open: Mutex::new(open), done: Mutex::new(Done { placed, columns }) }
    }

    /// Does a job; whether there was one.
    pub fn work(&self) -> Result<bool> {
        let job = self.open.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(job) = job else { return Ok(false) };
        let part = job()?;
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        match part {
            Part::Keys(placed) => done.placed = Some(placed),
            Part::Column(at, column) => done.columns[at] = Some(column),
        }
        Ok(true)
    }

    /// # Panics
    /// If a job has not ended well.
    pub fn next(self) -> Result<Next> {
        let Assembly { spec, rows, done, .. } = self;
        let Done { placed, columns } = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut placed = placed.expect("keys are a job");
        let columns = columns.into_iter().map(|column| column.expect("each column is a job"));
        let Some(order) = placed.take_order().map(Arc::new) else {
            return Ok(Next::Table(Box::new(placed.table(&spec, columns.collect(), rows)?)));
        };
        let job = |(at, column): (usize, Vector)| -> Job {
            let order = order.clone();
            Box::new(move || Ok(Part::Column(at, taken(&column, &order)?)))
        };
        let open = columns.enumerate().map(job).collect();
        Ok(Next::Jobs(Assembly::new(spec, rows, open, Some(placed))))
    }
}
