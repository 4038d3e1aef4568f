//! Operators in a row: `a + b + c …` is a tree as deep as it is long, and whatever walks a tree takes a frame of the
//! stack for each level. So texts are refused whose trees would be too deep, before there are any; what AND and OR
//! join, which programs write by the thousands, is put into a tree that is as low as can be.

use crate::error::{Result, SqlError};
use sqlparser::ast::{BinaryOperator, Expr, Value, VisitMut, VisitorMut};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::ControlFlow;

/// Operators inside each other (54001 beyond).
const DEPTH_MAX: usize = 4000;
/// Parentheses, brackets, CASEs and NOTs inside each other (54001 beyond): the parser takes more for another mistake.
const NESTED_MAX: usize = 250;
/// UNION, INTERSECT, EXCEPT and JOIN in a row (54001 beyond).
const QUERIES_MAX: usize = 1000;
/// Operands of AND or OR from which on their tree is looked after.
const OPERANDS_MANY: usize = 64;

/// One level of parentheses, or of a whole statement.
#[derive(Default)]
struct Level {
    /// Operators since the last AND, OR or the beginning, those that follow the last operand, and what stands deepest
    /// inside of operands.
    operators: usize,
    following: usize,
    inside: usize,
    /// The deepest since the last comma or clause, and of all.
    operand: usize,
    deepest: usize,
    queries: usize,
}

impl Level {
    fn operator(&mut self) {
        self.inside = self.inside.max(std::mem::take(&mut self.following));
        self.operators += 1;
    }

    fn depth(&self) -> usize {
        self.operators + self.inside.max(self.following)
    }

    fn end_operand(&mut self) {
        self.operand = self.operand.max(self.depth());
        (self.operators, self.following, self.inside) = (0, 0, 0);
    }

    fn end_expression(&mut self) {
        self.end_operand();
        self.deepest = self.deepest.max(self.operand);
        self.operand = 0;
    }

    /// The level that this one stands in.
    fn ended(mut self, outer: Option<Level>) -> Level {
        self.end_expression();
        let mut outer = outer.unwrap_or_default();
        outer.inside = outer.inside.max(self.deepest + 1);
        outer
    }
}

/// Whether AND or OR may have many operands.
pub(super) fn is_long(tokens: &[TokenWithSpan]) -> bool {
    let joins = |token: &&TokenWithSpan| matches!(&token.token, Token::Word(word) if matches!(word.keyword, Keyword::AND | Keyword::OR));
    tokens.len() > OPERANDS_MANY && tokens.iter().filter(joins).nth(OPERANDS_MANY).is_some()
}

/// Refuses a statement of too many operators inside each other.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let (mut levels, mut above): (Vec<Level>, Level) = (Vec::new(), Level::default());
    let mut negations = 0;
    for token in tokens {
        let negates = matches!(&token.token, Token::Word(word) if word.keyword == Keyword::NOT);
        negations = if negates { negations + 1 } else { 0 };
        match &token.token {
            Token::LParen | Token::LBracket => levels.push(std::mem::take(&mut above)),
            Token::RParen => above = above.ended(levels.pop()),
            Token::DoubleColon => above.following += 1,
            Token::RBracket => {
                above = above.ended(levels.pop());
                above.following += 1;
            }
            Token::Comma => above.end_expression(),
            Token::Word(word) if word.quote_style.is_some() => {}
            Token::Word(word) => match word.keyword {
                Keyword::CASE => levels.push(std::mem::take(&mut above)),
                Keyword::END => above = above.ended(levels.pop()),
                Keyword::AND | Keyword::OR => above.end_operand(),
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::JOIN => {
                    above.end_expression();
                    above.queries += 1;
                }
                Keyword::IS
                | Keyword::NOTNULL
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::SIMILAR
                | Keyword::BETWEEN
                | Keyword::COLLATE
                | Keyword::AT => above.operator(),
                // Words that are nobody's name.
                Keyword::SELECT
                | Keyword::FROM
                | Keyword::WHERE
                | Keyword::ON
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::ORDER
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::AS
                | Keyword::RETURNING => above.end_expression(),
                _ => {}
            },
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::Placeholder(_)
            | Token::Period
            | Token::Whitespace(_)
            | Token::EOF => {}
            _ => above.operator(),
        }
        if levels.len().max(negations) > NESTED_MAX {
            return Err(refused(format!("Expressions are nested more than {NESTED_MAX} deep.")));
        }
        if above.depth() + levels.len() > DEPTH_MAX {
            return Err(refused(format!("Operators stand more than {DEPTH_MAX} deep inside each other.")));
        }
        if above.queries > QUERIES_MAX {
            return Err(refused(format!("More than {QUERIES_MAX} queries or tables are joined in a row.")));
        }
    }
    Ok(())
}

fn refused(detail: String) -> SqlError {
    SqlError::new("54001", "stack depth limit exceeded").with_detail(detail)
}

/// Puts what many ANDs or ORs join into low trees.
pub(crate) fn lower(tree: &mut impl VisitMut) {
    let _ = tree.visit(&mut Lower);
}

struct Lower;

impl VisitorMut for Lower {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr else {
            return ControlFlow::Continue(());
        };
        let op = op.clone();
        if length(expr, &op) > OPERANDS_MANY {
            let operands = taken_apart(std::mem::replace(expr, nothing()), &op);
            *expr = joined(operands, &op);
        }
        ControlFlow::Continue(())
    }
}

fn nothing() -> Expr {
    Expr::value(Value::Null)
}

/// The operands of a chain.
fn length(expr: &Expr, of: &BinaryOperator) -> usize {
    let (mut length, mut rest) = (1, expr);
    while let Expr::BinaryOp { left, op, .. } = rest
        && op == of
    {
        (length, rest) = (length + 1, left);
    }
    length
}

fn taken_apart(expr: Expr, of: &BinaryOperator) -> Vec<Expr> {
    let (mut operands, mut rest) = (Vec::new(), expr);
    loop {
        match rest {
            Expr::BinaryOp { left, op, right } if op == *of => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                operands.reverse();
                return operands;
            }
        }
    }
}

fn joined(mut operands: Vec<Expr>, by: &BinaryOperator) -> Expr {
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => Expr::BinaryOp { left: Box::new(left), op: by.clone(), right: Box::new(right) },
                None => left,
            });
        }
        operands = pairs;
    }
    operands.pop().unwrap_or_else(nothing)
}
