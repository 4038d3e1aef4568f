//! Rows of every form that storage gives, and expressions over them.

use crate::program::Field;
use arrow_array::builder::BinaryViewBuilder;
use arrow_array::{ArrayRef, BinaryViewArray, Int32Array, Int64Array};
use arrow_buffer::NullBuffer;
use basalt_expr::context::EvalContext;
use basalt_expr::functions::Registry;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::vector::{Codes, IntValues, Ints, Vector};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

pub(crate) struct Rows {
    pub vectors: Vec<Vector>,
    pub fields: Vec<Field>,
    pub count: usize,
    pub ctx: Arc<EvalContext>,
}

pub(crate) fn op(symbol: &str, left: Expr, right: Expr) -> Expr {
    resolve::operator(Registry::builtin(), symbol, Some(left), right, &EvalContext::at(0)).unwrap()
}

pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    resolve::call(Registry::builtin(), name, args, &EvalContext::at(0)).unwrap()
}

const WORDS: [&str; 7] = ["apple", "a text that does not fit into its view", "pear", "", "plum", "Öl", "apple pie"];

impl Rows {
    /// int4, int8 with nulls, numeric(15,2), numeric(9,4) with nulls, date, text in codes with nulls, text, bool.
    pub fn new(count: usize) -> Rows {
        let mut state = 0x1234_5678u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let valid: NullBuffer = (0..count).map(|_| random(5) != 0).collect();
        let small: Vec<i32> = (0..count).map(|_| random(21) as i32 - 10).collect();
        let large: Vec<i64> = (0..count).map(|_| (random(1 << 30) as i64 - (1 << 29)) << 20).collect();
        let price: Vec<i64> = (0..count).map(|_| random(10_000_000) as i64 - 1_000_000).collect();
        let rate: Vec<i32> = (0..count).map(|_| random(20_000) as i32).collect();
        let days: Vec<i32> = (0..count).map(|_| random(2500) as i32 + 8000).collect();
        let mut entries = WORDS;
        entries.sort_unstable();
        let dictionary = BinaryViewArray::from_iter_values(entries.iter().map(|word| word.as_bytes()));
        let codes: Vec<u32> = (0..count).map(|_| random(WORDS.len() as u64) as u32).collect();
        let mut texts = BinaryViewBuilder::new();
        (0..count).for_each(|_| texts.append_value(WORDS[random(WORDS.len() as u64) as usize]));
        let bools = (0..count).map(|row| (row % 7 != 0).then_some(random(2) == 0)).collect::<Vec<_>>();
        let measured = |array: ArrayRef| Vector::measured(array);
        let numeric = |precision, scale| DataType::Numeric(Some((precision, scale)));
        let vectors = vec![
            measured(Arc::new(Int32Array::from(small))),
            measured(Arc::new(Int64Array::new(large.into(), Some(valid.clone())))),
            // In a narrower width than the column's.
            Vector::Ints(Ints::measured(IntValues::I32(price.iter().map(|price| *price as i32).collect()), None)),
            Vector::Ints(Ints::measured(IntValues::I32(rate.into()), Some(valid.clone()))),
            measured(Arc::new(Int32Array::from(days))),
            Vector::Codes(Codes { codes: codes.into(), nulls: Some(valid), dictionary: Arc::new(dictionary) }),
            Vector::Flat(Arc::new(texts.finish())),
            Vector::Flat(Arc::new(arrow_array::BooleanArray::from(bools))),
        ];
        let fields = vec![
            Field::new(DataType::Int4, false),
            Field::new(DataType::Int8, true),
            Field::new(numeric(15, 2), false),
            Field::new(numeric(9, 4), true),
            Field::new(DataType::Date, false),
            Field::new(DataType::Text, true),
            Field::new(DataType::Text, false),
            Field::new(DataType::Bool, true),
        ];
        Rows { vectors, fields, count, ctx: Arc::new(EvalContext::at(0)) }
    }

    pub fn column_values(&self, index: usize) -> Vec<i128> {
        match &self.vectors[index] {
            Vector::Ints(ints) => (0..self.count).map(|row| ints.values.get(row)).collect(),
            _ => panic!("column {index} holds no integers"),
        }
    }

    pub fn column(&self, index: usize) -> Expr {
        Expr::Column { index, ty: self.fields[index].ty.clone() }
    }

    /// True of few rows.
    pub fn few(&self) -> Expr {
        op("<", self.column(4), date(8100))
    }

    pub fn values(&self) -> Vec<Expr> {
        let column = |index| self.column(index);
        let discounted = op("*", column(2), op("-", Expr::int4(1), column(3)));
        let case = |condition: Expr, value: Expr, otherwise: Option<Expr>| {
            resolve::case(vec![(condition, value)], otherwise, &self.ctx).unwrap()
        };
        vec![
            column(0),
            op("+", column(0), column(0)),
            op("-", column(1), column(0)),
            op("-", Expr::int4(7), column(0)),
            op("*", column(0), column(1)),
            op("+", column(2), column(3)),
            op("-", column(3), column(2)),
            discounted.clone(),
            op("*", discounted.clone(), op("+", Expr::int4(1), column(3))),
            op("*", op("*", discounted.clone(), discounted.clone()), column(2)),
            op("/", column(2), decimal(700)),
            op("-", column(4), column(4)),
            op("||", column(5), column(6)),
            call("upper", vec![column(5)]),
            call("substring", vec![column(5), Expr::text("p+l?")]),
            call("replace", vec![column(6), Expr::text("p"), Expr::text("pp")]),
            call("length", vec![column(6)]),
            case(op("=", column(5), Expr::text("pear")), discounted.clone(), Some(Expr::int4(0))),
            case(op(">", column(0), Expr::int4(0)), column(0), None),
            case(Expr::IsNull(Box::new(column(3))), column(2), Some(column(3))),
            case(op("~~", column(6), Expr::text("%p%")), Expr::int4(1), Some(Expr::int4(0))),
            case(column(7), column(0), Some(op("*", column(0), Expr::int4(100)))),
        ]
    }

    pub fn conditions(&self) -> Vec<Expr> {
        let column = |index| self.column(index);
        let mut all = Vec::new();
        for symbol in ["=", "<>", "<", "<=", ">", ">="] {
            all.push(op(symbol, column(0), Expr::int4(3)));
            all.push(op(symbol, Expr::int4(3), column(0)));
            all.push(op(symbol, column(1), column(0)));
            all.push(op(symbol, column(2), decimal(123_456)));
            all.push(op(symbol, column(2), column(3)));
            all.push(op(symbol, column(3), op("*", column(0), decimal(50))));
            all.push(op(symbol, column(4), date(9000)));
            all.push(op(
                symbol,
                column(4),
                Expr::Const { value: Datum::I64(9000 * 86_400_000_000 + 5), ty: DataType::Timestamp },
            ));
            all.push(op(symbol, column(5), Expr::text("pear")));
            all.push(op(symbol, column(6), Expr::text("pear")));
            all.push(op(symbol, column(5), column(6)));
            all.push(Expr::Not(Box::new(op(symbol, column(3), decimal(90)))));
        }
        let list = |values: &[i32]| values.iter().map(|value| Expr::int4(*value)).collect::<Vec<_>>();
        for negated in [false, true] {
            all.push(
                resolve::in_list(Registry::builtin(), column(0), list(&[1, 5, -7]), &|_| false, negated, &self.ctx)
                    .unwrap(),
            );
        }
        let like = op("~~", column(5), Expr::text("%pp%"));
        all.extend([
            like.clone(),
            Expr::Not(Box::new(like.clone())),
            Expr::IsNull(Box::new(column(5))),
            Expr::IsNotNull(Box::new(column(1))),
            Expr::Or(vec![like.clone(), op(">", column(0), Expr::int4(6)), Expr::IsNull(Box::new(column(3)))]),
            Expr::Not(Box::new(Expr::Or(vec![op(">", column(1), Expr::int4(0)), op("<", column(0), Expr::int4(2))]))),
            Expr::And(vec![
                op("<>", column(0), Expr::int4(0)),
                op(">", op("/", Expr::int4(12), column(0)), Expr::int4(2)),
            ]),
            Expr::Coalesce { args: vec![op("=", column(5), Expr::text("plum")), Expr::bool(true)], ty: DataType::Bool },
            column(7),
            Expr::bool(true),
            Expr::bool(false),
        ]);
        all
    }
}

pub fn decimal(hundredths: i64) -> Expr {
    Expr::Const { value: Datum::I64(hundredths), ty: DataType::Numeric(Some((15, 2))) }
}

fn date(days: i32) -> Expr {
    Expr::Const { value: Datum::I32(days), ty: DataType::Date }
}
