//! The meaning of the optimizer's tree, as plainly as it can be written: every join is a loop over pairs of rows.

use super::database::Rows;
use crate::optimize::node::{JoinKind, Key, Node, Op};
use crate::plan::{AggregateCall, ColId, SortKey, WindowCall, WindowFunction};
use ahash::AHashMap;
use basalt_expr::EvalContext;
use basalt_expr::eval::vector::{from_values, value_at};
use basalt_expr::operators::compare_datums;
use basalt_expr::tree::Expr;
use basalt_expr::window::Ranking;
use basalt_types::{DataType, Datum, ObjectId};
use std::cmp::Ordering;

/// The error of a tree that is wrong.
pub const UNDECIDED: &str = "a dependent group is not decided by the others";

pub struct Interpreter {
    pub tables: AHashMap<ObjectId, Rows>,
    pub eval: EvalContext,
}

/// Rows and what their columns are.
struct Table {
    columns: Vec<(ColId, DataType)>,
    rows: Rows,
}

type Result<T> = std::result::Result<T, String>;

impl Interpreter {
    /// The rows of a tree, with these columns.
    pub fn run(&self, node: &Node, columns: &[ColId]) -> Result<Rows> {
        let table = self.node(node)?;
        let place = |id: &ColId| table.columns.iter().position(|(own, _)| own == id).expect("an output");
        let places: Vec<usize> = columns.iter().map(place).collect();
        Ok(table.rows.iter().map(|row| places.iter().map(|at| row[*at].clone()).collect()).collect())
    }

    fn node(&self, node: &Node) -> Result<Table> {
        let columns = node.columns();
        let rows = match &node.op {
            Op::Scan { table, columns: read, filter } => {
                let cut = |row: &Vec<Datum>| read.iter().map(|(_, column)| row[column.position()].clone()).collect();
                let rows: Rows = self.tables[&table.id].iter().map(cut).collect();
                self.filtered(Table { columns: columns.clone(), rows }, filter)?
            }
            Op::Values { rows, .. } => {
                let row = |row: &Vec<Expr>| row.iter().map(|expr| self.value(expr, &[], &[])).collect();
                rows.iter().map(row).collect::<Result<Rows>>()?
            }
            Op::Shared { plan, columns, .. } => {
                let sources: Vec<ColId> = columns.iter().map(|column| column.source).collect();
                self.run(plan, &sources)?
            }
            Op::Recursive { .. } | Op::Working { .. } => return Err("a recursion".to_string()),
            Op::Filter { input, conjuncts } => self.filtered(self.node(input)?, conjuncts)?,
            Op::Project { input, exprs } => {
                let table = self.node(input)?;
                let exprs: Vec<&Expr> = exprs.iter().map(|(_, expr)| expr).collect();
                table.rows.iter().map(|row| self.values(&exprs, &table.columns, row)).collect::<Result<Rows>>()?
            }
            Op::Join { left, right, kind, keys, residual, .. } => {
                self.join(self.node(left)?, self.node(right)?, *kind, keys, residual)?
            }
            Op::Aggregate { input, groups, dependent, aggregates } => {
                self.aggregate(self.node(input)?, groups, dependent, aggregates)?
            }
            Op::Sort { input, keys } => self.sorted(self.node(input)?, keys)?.rows,
            Op::ProjectSet { .. } => return Err("sets are not interpreted".to_string()),
            Op::Window { input, calls } => self.numbered(self.node(input)?, calls)?,
            Op::Limit { input, limit, offset } => {
                let count = |expr: &Option<Expr>, otherwise: usize| match expr {
                    Some(expr) => Ok(match self.value(expr, &[], &[])? {
                        Datum::I64(count) => count as usize,
                        _ => otherwise,
                    }),
                    None => Ok::<usize, String>(otherwise),
                };
                let (limit, offset) = (count(limit, usize::MAX)?, count(offset, 0)?);
                self.node(input)?.rows.into_iter().skip(offset).take(limit).collect()
            }
            Op::UnionAll { left, right, columns } => {
                let (of_left, of_right): (Vec<ColId>, Vec<ColId>) =
                    columns.iter().map(|column| (column.left, column.right)).unzip();
                let mut rows = self.run(left, &of_left)?;
                rows.extend(self.run(right, &of_right)?);
                rows
            }
        };
        Ok(Table { columns, rows })
    }

    /// With row numbers; other windows are not interpreted.
    fn numbered(&self, table: Table, calls: &[(ColId, WindowCall)]) -> Result<Rows> {
        let [(_, call)] = calls else { return Err("windows are not interpreted".to_string()) };
        if call.function != WindowFunction::Ranking(Ranking::RowNumber) {
            return Err("windows are not interpreted".to_string());
        }
        let columns = table.columns.clone();
        let partition: Vec<&Expr> = call.partition_by.iter().collect();
        let mut rows = Rows::new();
        let mut numbers: Vec<(Vec<Datum>, i64)> = Vec::new();
        for mut row in self.sorted(table, &call.order_by)?.rows {
            let of = self.values(&partition, &columns, &row)?;
            let known = numbers.iter().position(|(known, _)| *known == of).unwrap_or(numbers.len());
            if known == numbers.len() {
                numbers.push((of, 0));
            }
            numbers[known].1 += 1;
            row.push(Datum::I64(numbers[known].1));
            rows.push(row);
        }
        Ok(rows)
    }

    fn value(&self, expr: &Expr, columns: &[(ColId, DataType)], row: &[Datum]) -> Result<Datum> {
        let bound = expr.clone().rewrite(&mut |node| match node {
            Expr::Hole { id, ty } => {
                let index = columns.iter().position(|(own, _)| *own == id);
                Expr::Column { index: index.unwrap_or_else(|| panic!("column {id} is not there")), ty }
            }
            other => other,
        });
        bound.eval_scalar(row, &self.eval).map_err(|error| error.to_string())
    }

    fn values(&self, exprs: &[&Expr], columns: &[(ColId, DataType)], row: &[Datum]) -> Result<Vec<Datum>> {
        exprs.iter().map(|expr| self.value(expr, columns, row)).collect()
    }

    fn holds(&self, conjuncts: &[Expr], columns: &[(ColId, DataType)], row: &[Datum]) -> Result<bool> {
        for conjunct in conjuncts {
            if self.value(conjunct, columns, row)? != Datum::Bool(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn filtered(&self, table: Table, conjuncts: &[Expr]) -> Result<Rows> {
        let mut out = Rows::new();
        for row in table.rows {
            if self.holds(conjuncts, &table.columns, &row)? {
                out.push(row);
            }
        }
        Ok(out)
    }

    /// What a key says of a pair of rows.
    fn compared(&self, key: &Key, columns: &[(ColId, DataType)], row: &[Datum]) -> Result<Datum> {
        assert_eq!(key.left.ty(), key.right.ty(), "keys are of one type");
        let (left, right) = (self.value(&key.left, columns, row)?, self.value(&key.right, columns, row)?);
        if key.null_safe && (left.is_null() || right.is_null()) {
            return Ok(Datum::Bool(left.is_null() && right.is_null()));
        }
        let args = vec![key.left.clone(), key.right.clone()];
        self.value(&Expr::Call { function: key.equal, args, ty: DataType::Bool }, columns, row)
    }

    fn join(&self, left: Table, right: Table, kind: JoinKind, keys: &[Key], residual: &[Expr]) -> Result<Rows> {
        let columns: Vec<_> = left.columns.iter().chain(&right.columns).cloned().collect();
        let (aware, plain) = keys.split_at(usize::from(is_null_aware(kind)));
        let mut out = Rows::new();
        let mut taken = vec![false; right.rows.len()];
        for row in &left.rows {
            let mut matches = 0;
            let mut unknown = false;
            for (at, other) in right.rows.iter().enumerate() {
                let pair: Vec<Datum> = row.iter().chain(other).cloned().collect();
                let mut found = self.holds(residual, &columns, &pair)?;
                for key in plain {
                    found = found && self.compared(key, &columns, &pair)? == Datum::Bool(true);
                }
                if found && let [key] = aware {
                    let said = self.compared(key, &columns, &pair)?;
                    unknown |= said.is_null();
                    found = said == Datum::Bool(true);
                }
                if found {
                    matches += 1;
                    taken[at] = true;
                    if kind.gives_right() {
                        out.push(pair);
                    }
                }
            }
            self.end_row(row, kind, matches, unknown, right.columns.len(), &mut out)?;
        }
        if kind == JoinKind::Full {
            let rest = right.rows.into_iter().zip(taken).filter(|(_, taken)| !taken);
            out.extend(rest.map(|(row, _)| vec![Datum::Null; left.columns.len()].into_iter().chain(row).collect()));
        }
        Ok(out)
    }

    fn end_row(
        &self,
        row: &[Datum],
        kind: JoinKind,
        matches: usize,
        unknown: bool,
        width: usize,
        out: &mut Rows,
    ) -> Result<()> {
        let kept = match kind {
            JoinKind::Inner => false,
            JoinKind::Single if matches > 1 => return Err("21000".into()),
            JoinKind::Left | JoinKind::Full | JoinKind::Single => matches == 0,
            JoinKind::Semi => matches > 0,
            JoinKind::Anti => matches == 0,
            JoinKind::NullAwareAnti => matches == 0 && !unknown,
            JoinKind::Mark { .. } => true,
        };
        if kept {
            let mut row = row.to_vec();
            match kind {
                JoinKind::Mark { .. } => row.push(match (matches, unknown) {
                    (0, true) => Datum::Null,
                    (matches, _) => Datum::Bool(matches > 0),
                }),
                kind if kind.gives_right() => row.extend(vec![Datum::Null; width]),
                _ => {}
            }
            out.push(row);
        }
        Ok(())
    }

    fn sorted(&self, table: Table, keys: &[SortKey]) -> Result<Table> {
        let exprs: Vec<&Expr> = keys.iter().map(|key| &key.expr).collect();
        let mut keyed = Vec::with_capacity(table.rows.len());
        for row in table.rows {
            keyed.push((self.values(&exprs, &table.columns, &row)?, row));
        }
        keyed.sort_by(|(a, _), (b, _)| {
            let mut pairs = keys.iter().zip(a.iter().zip(b));
            pairs
                .find_map(|(key, (a, b))| Some(order(key, a, b)).filter(|found| found.is_ne()))
                .unwrap_or(Ordering::Equal)
        });
        Ok(Table { columns: table.columns, rows: keyed.into_iter().map(|(_, row)| row).collect() })
    }

    fn aggregate(
        &self,
        table: Table,
        groups: &[(ColId, Expr)],
        dependent: &[usize],
        aggregates: &[(ColId, AggregateCall)],
    ) -> Result<Rows> {
        let exprs: Vec<&Expr> = groups.iter().map(|(_, expr)| expr).collect();
        let types: Vec<DataType> = exprs.iter().map(|expr| expr.ty()).collect();
        let same = |a: &[Datum], b: &[Datum], at: usize| compare_datums(&types[at], &a[at], &b[at]).is_eq();
        let mut found: Vec<(Vec<Datum>, Rows)> = Vec::new();
        if groups.is_empty() {
            found.push((Vec::new(), Rows::new()));
        }
        for row in table.rows {
            let key = self.values(&exprs, &table.columns, &row)?;
            let compared = |at: &usize| !dependent.contains(at);
            let place =
                found.iter().position(|(known, _)| (0..key.len()).filter(compared).all(|at| same(known, &key, at)));
            match place {
                Some(at) => {
                    if !dependent.iter().all(|group| same(&found[at].0, &key, *group)) {
                        return Err(UNDECIDED.into());
                    }
                    found[at].1.push(row);
                }
                None => found.push((key, vec![row])),
            }
        }
        let mut out = Rows::new();
        for (mut row, rows) in found {
            for (_, call) in aggregates {
                row.push(self.call(call, &table.columns, &rows)?);
            }
            out.push(row);
        }
        Ok(out)
    }

    fn call(&self, call: &AggregateCall, columns: &[(ColId, DataType)], rows: &Rows) -> Result<Datum> {
        let all = Table { columns: columns.to_vec(), rows: rows.clone() };
        let rows = self.filtered(all, call.filter.as_slice())?;
        let table = self.sorted(Table { columns: columns.to_vec(), rows }, &call.order_by)?;
        let args: Vec<&Expr> = call.args.iter().collect();
        let mut values: Rows = Rows::new();
        for row in &table.rows {
            let row = self.values(&args, columns, row)?;
            let types = call.args.iter().map(Expr::ty);
            let known = |other: &Vec<Datum>| {
                types.clone().zip(row.iter().zip(other)).all(|(ty, (a, b))| compare_datums(&ty, a, b).is_eq())
            };
            if !(call.distinct && values.iter().any(known)) {
                values.push(row);
            }
        }
        let error = |error: basalt_expr::Error| error.to_string();
        let vector = |at: usize, arg: &Expr| {
            from_values(&arg.ty(), values.iter().map(|row| &row[at]), values.len()).map_err(error)
        };
        let arrays = call.args.iter().enumerate().map(|(at, arg)| vector(at, arg)).collect::<Result<Vec<_>>>()?;
        let mut accumulator = call.resolved.accumulator();
        accumulator.update(&vec![0; values.len()], &arrays, None, 1).map_err(error)?;
        let result = accumulator.evaluate().map_err(error)?;
        Ok(value_at(&call.resolved.ty, &result, 0))
    }
}

fn order(key: &SortKey, a: &Datum, b: &Datum) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => {
            if key.nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (false, true) => {
            if key.nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (false, false) => {
            let found = compare_datums(&key.expr.ty(), a, b);
            if key.descending { found.reverse() } else { found }
        }
    }
}

fn is_null_aware(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. })
}
