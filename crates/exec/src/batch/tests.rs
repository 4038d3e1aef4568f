//! Whatever way an expression takes here, it gives what `expr` gives of the same rows.

use super::*;
use crate::program::{Field, logical};
use crate::testing::{Rows, op};
use basalt_expr::tree::Expr;

/// What `expr` says of an expression and of rows for which it is asked alone.
fn expected(rows: &Rows, expr: &Expr, at: &[u32]) -> ArrayRef {
    let columns: Vec<ArrayRef> = (rows.vectors.iter().zip(&rows.fields))
        .map(|(vector, field)| logical(&vector.take(at), &field.held()))
        .collect();
    expr.eval(&columns, at.len(), &rows.ctx).unwrap()
}

fn work(program: Program, rows: &Rows) -> Work {
    Work::new(Arc::new(program), rows.ctx.clone(), Vec::new())
}

#[test]
fn columns_are_what_expressions_are() {
    let rows = Rows::new(1000);
    for expr in rows.values() {
        let mut program = Program::new(rows.fields.clone());
        let place = program.define(&expr, &rows.ctx);
        let field: Field = program.fields[place].clone();
        let mut work = work(program, &rows);
        let mut batch = Batch::of_vectors(&rows.vectors, rows.count, &work);
        let got = logical(&batch.vector(place, &mut work).unwrap(), &field.held());
        let got = match field.held() == expr.ty() {
            true => got,
            false => basalt_expr::cast::cast_array(&field.held(), &expr.ty(), &got, false, &rows.ctx).unwrap(),
        };
        let all: Vec<u32> = (0..rows.count as u32).collect();
        assert_eq!(&got, &expected(&rows, &expr, &all), "{expr:?}");
    }
}

/// What is known of a column's values after some batches serves the next: each row's value is the same from the first on.
#[test]
fn small_batches_give_what_large_ones_give() {
    const ROWS: usize = 61;
    let rows = Rows::new(ROWS * 150);
    for expr in rows.values() {
        let mut program = Program::new(rows.fields.clone());
        let place = program.define(&expr, &rows.ctx);
        let field: Field = program.fields[place].clone();
        let mut work = work(program, &rows);
        for from in (0..rows.count).step_by(ROWS) {
            let at: Vec<u32> = (from as u32..(from + ROWS) as u32).collect();
            let vectors: Vec<Vector> = rows.vectors.iter().map(|vector| vector.take(&at)).collect();
            let mut batch = Batch::of_vectors(&vectors, ROWS, &work);
            let got = logical(&batch.vector(place, &mut work).unwrap(), &field.held());
            let got = match field.held() == expr.ty() {
                true => got,
                false => basalt_expr::cast::cast_array(&field.held(), &expr.ty(), &got, false, &rows.ctx).unwrap(),
            };
            assert_eq!(&got, &expected(&rows, &expr, &at), "{expr:?}");
        }
    }
}

#[test]
fn conditions_let_pass_what_filters_let_pass() {
    let rows = Rows::new(1000);
    let all = rows.conditions();
    for (at, condition) in all.iter().enumerate() {
        // Alone, and behind another one that leaves few rows or many.
        for others in [vec![], vec![all[(at * 7 + 3) % all.len()].clone()], vec![rows.few(), condition.clone()]] {
            let conditions: Vec<Expr> = others.into_iter().chain([condition.clone()]).collect();
            let mut program = Program::new(rows.fields.clone());
            let compiled: Vec<Condition> =
                conditions.iter().map(|condition| program.condition(condition, &rows.ctx)).collect();
            let mut work = work(program, &rows);
            let mut batch = Batch::of_vectors(&rows.vectors, rows.count, &work);
            batch.filter(&compiled, &mut work).unwrap();
            batch.compact();
            let kept = batch.at.clone().unwrap_or_else(|| (0..rows.count as u32).collect());
            let columns: Vec<ArrayRef> =
                rows.vectors.iter().zip(&rows.fields).map(|(vector, field)| logical(vector, &field.held())).collect();
            let wanted = Expr::and(conditions.clone()).filter_indices(&columns, rows.count, &rows.ctx).unwrap();
            assert_eq!(kept, wanted, "{conditions:?}");
            // Columns loaded late are those of the rows that are left.
            for place in 0..rows.vectors.len() {
                let late = batch.vector(place, &mut work).unwrap();
                let held = rows.fields[place].held();
                assert_eq!(&logical(&late, &held), &logical(&rows.vectors[place].take(&wanted), &held));
            }
        }
    }
}

#[test]
fn what_fails_fails_for_rows_that_count_alone() {
    let rows = Rows::new(100);
    let divides = op("/", Expr::int4(100), rows.column(0));
    let guard = op("<>", rows.column(0), Expr::int4(0));
    let mut program = Program::new(rows.fields.clone());
    let place = program.define(&divides, &rows.ctx);
    let guard = program.condition(&guard, &rows.ctx);
    let mut work = work(program, &rows);
    let mut batch = Batch::of_vectors(&rows.vectors, rows.count, &work);
    assert!(matches!(batch.vector(place, &mut work), Err(Error::Expr(error)) if error.sqlstate == "22012"));
    let mut batch = Batch::of_vectors(&rows.vectors, rows.count, &work);
    batch.filter(&[guard], &mut work).unwrap();
    assert!(batch.mask().is_some(), "most rows count: they stay where they are");
    batch.vector(place, &mut work).unwrap();
}

#[test]
fn equal_expressions_are_computed_once() {
    let rows = Rows::new(10);
    let mut program = Program::new(rows.fields.clone());
    let product = op("*", rows.column(2), rows.column(2));
    let first = program.define(&product, &rows.ctx);
    let defs = program.defs.len();
    assert_eq!(program.define(&product, &rows.ctx), first);
    let larger = op("+", product.clone(), Expr::int4(1));
    program.define(&larger, &rows.ctx);
    assert_eq!(program.defs.len(), defs + 1);
}
