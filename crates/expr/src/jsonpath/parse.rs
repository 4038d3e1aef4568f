//! From tokens to a path.
//!
//! Values and conditions share their parentheses and operators, so one descent by precedence reads both and
//! checks at each place which of the two it may be. Binding, weakest first: `||`, `&&`, comparisons, `+ -`,
//! `* / %`, signs, accessors.

use super::lex::{Spanned, Token, syntax_error, tokens};
use super::*;
use crate::error::Error;
use crate::pattern::are;

/// Steps of one expression beyond this are refused (54001).
const STEPS_MAX: usize = 500;

/// Parentheses, signs and filters inside of one another beyond this are refused (54001).
const DEPTH_MAX: usize = 64;

/// Precedences, weakest first.
const OR: u8 = 0;
const AND: u8 = 1;
const COMPARISON: u8 = 2;
const SUM: u8 = 3;
const PRODUCT: u8 = 4;

pub(super) fn path(text: &str) -> Result<JsonPath> {
    let tokens = tokens(text)?;
    if tokens.len() == 1 {
        return Err(Error::invalid_text("jsonpath", text));
    }
    let mut parser = Parser { text, tokens, at: 0, depth: 0, in_filter: 0, in_subscript: 0 };
    let lax = match () {
        () if parser.take_word("strict") => false,
        () => {
            parser.take_word("lax");
            true
        }
    };
    let expr = match parser.either()? {
        Either::Expr(expr) => expr,
        Either::Predicate(predicate, _) => Expr { head: Head::Predicate(Box::new(predicate)), steps: Vec::new() },
    };
    if *parser.peek() != Token::End {
        return Err(parser.unexpected());
    }
    Ok(JsonPath { lax, expr })
}

/// What a piece of the path turned out to be; a condition also says whether it stands in parentheses.
enum Either {
    Expr(Expr),
    Predicate(Predicate, bool),
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Spanned>,
    at: usize,
    depth: usize,
    in_filter: usize,
    in_subscript: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn peek_second(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].token
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn unexpected(&self) -> Error {
        let found = &self.tokens[self.at];
        syntax_error("syntax error", &self.text[found.start..found.end])
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word { text, plain: true } if is_keyword(text, word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::new("54001", "stack depth limit exceeded")
                .with_detail(format!("Paths may be nested {DEPTH_MAX} levels deep.")));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn either(&mut self) -> Result<Either> {
        self.operators(OR)
    }

    /// An operand and the operators behind it that bind at least as tightly as `weakest`.
    fn operators(&mut self, weakest: u8) -> Result<Either> {
        let mut left = match self.is_symbol("!") && weakest <= COMPARISON {
            true => {
                self.advance();
                Either::Predicate(Predicate::Not(Box::new(self.deeper(Parser::delimited)?)), false)
            }
            false => self.unary()?,
        };
        loop {
            let Some(binds) = self.operator().filter(|binds| *binds >= weakest) else { return Ok(left) };
            left = match binds {
                OR | AND => self.logic(left, binds)?,
                COMPARISON => self.comparison(left)?,
                _ => self.arithmetic(left, binds)?,
            };
        }
    }

    /// How tightly the operator at the current place binds.
    fn operator(&self) -> Option<u8> {
        Some(match self.peek() {
            Token::Symbol("||") => OR,
            Token::Symbol("&&") => AND,
            Token::Symbol("==" | "<>" | "!=" | "<" | "<=" | ">" | ">=") => COMPARISON,
            Token::Symbol("+" | "-") => SUM,
            Token::Symbol("*" | "/" | "%") => PRODUCT,
            _ if self.is_word("starts") || self.is_word("like_regex") => COMPARISON,
            _ => return None,
        })
    }

    fn logic(&mut self, left: Either, binds: u8) -> Result<Either> {
        let left = Box::new(self.condition(left)?);
        self.advance();
        let right = self.operators(binds + 1)?;
        let right = Box::new(self.condition(right)?);
        let predicate = if binds == OR { Predicate::Or(left, right) } else { Predicate::And(left, right) };
        Ok(Either::Predicate(predicate, false))
    }

    fn arithmetic(&mut self, left: Either, binds: u8) -> Result<Either> {
        let left = Box::new(self.value(left)?);
        let op = match self.peek() {
            Token::Symbol("+") => ArithmeticOp::Add,
            Token::Symbol("-") => ArithmeticOp::Sub,
            Token::Symbol("*") => ArithmeticOp::Mul,
            Token::Symbol("/") => ArithmeticOp::Div,
            _ => ArithmeticOp::Mod,
        };
        self.advance();
        let right = self.operators(binds + 1)?;
        let right = Box::new(self.value(right)?);
        Ok(Either::Expr(Expr { head: Head::Arithmetic(op, left, right), steps: Vec::new() }))
    }

    fn condition(&self, either: Either) -> Result<Predicate> {
        match either {
            Either::Predicate(predicate, _) => Ok(predicate),
            Either::Expr(_) => Err(self.unexpected()),
        }
    }

    fn value(&self, either: Either) -> Result<Expr> {
        match either {
            Either::Expr(expr) => Ok(expr),
            Either::Predicate(..) => Err(self.unexpected()),
        }
    }

    fn predicate(&mut self) -> Result<Predicate> {
        let either = self.either()?;
        self.condition(either)
    }

    fn expr(&mut self) -> Result<Expr> {
        let either = self.operators(SUM)?;
        self.value(either)
    }

    fn comparison(&mut self, left: Either) -> Result<Either> {
        let left = self.value(left)?;
        let op = match self.peek() {
            Token::Symbol("==") => CompareOp::Equal,
            Token::Symbol("<>" | "!=") => CompareOp::NotEqual,
            Token::Symbol("<") => CompareOp::Less,
            Token::Symbol("<=") => CompareOp::LessOrEqual,
            Token::Symbol(">") => CompareOp::Greater,
            Token::Symbol(">=") => CompareOp::GreaterOrEqual,
            _ if self.is_word("starts") => return self.starts_with(left),
            _ => return self.like_regex(left),
        };
        self.advance();
        let right = self.expr()?;
        Ok(Either::Predicate(Predicate::Compare(op, left, right), false))
    }

    /// What `!` takes: a condition in parentheses, or `exists (…)`.
    fn delimited(&mut self) -> Result<Predicate> {
        if self.is_word("exists") {
            return self.exists();
        }
        self.expect("(")?;
        let inner = self.predicate()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn exists(&mut self) -> Result<Predicate> {
        self.advance();
        self.expect("(")?;
        let inner = self.deeper(Parser::expr)?;
        self.expect(")")?;
        Ok(Predicate::Exists(inner))
    }

    fn starts_with(&mut self, left: Expr) -> Result<Either> {
        self.advance();
        if !self.take_word("with") {
            return Err(self.unexpected());
        }
        let head = match self.peek().clone() {
            Token::String(text) => Head::String(text),
            Token::Variable(name) => Head::Variable(name),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Either::Predicate(Predicate::StartsWith(left, Expr { head, steps: Vec::new() }), false))
    }

    fn like_regex(&mut self, left: Expr) -> Result<Either> {
        self.advance();
        let Token::String(text) = self.peek().clone() else { return Err(self.unexpected()) };
        self.advance();
        let mut flags = String::new();
        if self.take_word("flag") {
            let Token::String(given) = self.peek().clone() else { return Err(self.unexpected()) };
            flags = given;
            self.advance();
        }
        if let Some(unknown) = flags.chars().find(|flag| !matches!(flag, 'i' | 's' | 'm' | 'x' | 'q')) {
            return Err(Error::new("42601", "invalid input syntax for type jsonpath")
                .with_detail(format!("Unrecognized flag character \"{unknown}\" in LIKE_REGEX predicate.")));
        }
        let pattern = Pattern {
            text,
            insensitive: flags.contains('i'),
            dot_all: flags.contains('s'),
            multi_line: flags.contains('m'),
            expanded: flags.contains('x'),
            literal: flags.contains('q'),
        };
        if pattern.expanded && !pattern.literal {
            return Err(Error::not_supported("XQuery \"x\" flag (expanded regular expressions) is not implemented"));
        }
        are::cached(&pattern.text, pattern.flags(), |_| ())?;
        Ok(Either::Predicate(Predicate::LikeRegex(left, pattern), false))
    }

    fn unary(&mut self) -> Result<Either> {
        let negative = match self.peek() {
            Token::Symbol("+") => false,
            Token::Symbol("-") => true,
            _ => return self.accessors(),
        };
        self.advance();
        let operand = self.deeper(Parser::unary)?;
        let operand = self.value(operand)?;
        let head = match operand.head {
            Head::Number(value) if operand.steps.is_empty() => Head::Number(if negative { -value } else { value }),
            _ if negative => Head::Negate(Box::new(operand)),
            _ => Head::Plus(Box::new(operand)),
        };
        Ok(Either::Expr(Expr { head, steps: Vec::new() }))
    }

    fn accessors(&mut self) -> Result<Either> {
        let mut expr = match self.primary()? {
            Either::Expr(expr) => expr,
            Either::Predicate(predicate, true) if self.at_accessor() => {
                Expr { head: Head::Predicate(Box::new(predicate)), steps: Vec::new() }
            }
            Either::Predicate(predicate, true) if self.is_word("is") => {
                self.advance();
                if !self.take_word("unknown") {
                    return Err(self.unexpected());
                }
                return Ok(Either::Predicate(Predicate::IsUnknown(Box::new(predicate)), false));
            }
            predicate => return Ok(predicate),
        };
        while self.at_accessor() {
            let step = self.accessor()?;
            expr.steps.push(step);
            if expr.steps.len() > STEPS_MAX {
                return Err(Error::new("54001", "stack depth limit exceeded")
                    .with_detail(format!("An expression of a path may have {STEPS_MAX} accessors.")));
            }
        }
        Ok(Either::Expr(expr))
    }

    fn at_accessor(&self) -> bool {
        matches!(self.peek(), Token::Symbol("." | "[" | "?"))
    }

    fn primary(&mut self) -> Result<Either> {
        if self.take_symbol("(") {
            let inner = self.deeper(Parser::either)?;
            self.expect(")")?;
            return Ok(match inner {
                Either::Predicate(predicate, _) => Either::Predicate(predicate, true),
                expr => expr,
            });
        }
        let head = match self.peek().clone() {
            Token::String(text) => Head::String(text),
            Token::Integer(text) | Token::Number(text) => Head::Number(Numeric::parse(&text)?),
            Token::Variable(name) => Head::Variable(name),
            Token::Symbol("$") => Head::Root,
            Token::Symbol("@") if self.in_filter == 0 => {
                return Err(Error::new("42601", "@ is not allowed in root expressions"));
            }
            Token::Symbol("@") => Head::Current,
            Token::Word { plain: true, .. } => {
                if self.is_word("exists") {
                    return Ok(Either::Predicate(self.exists()?, false));
                }
                if self.is_word("last") {
                    if self.in_subscript == 0 {
                        return Err(Error::new("42601", "LAST is allowed only in array subscripts"));
                    }
                    Head::Last
                } else if self.is_word("null") {
                    Head::Null
                } else if self.is_word("true") {
                    Head::Bool(true)
                } else if self.is_word("false") {
                    Head::Bool(false)
                } else {
                    return Err(self.unexpected());
                }
            }
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Either::Expr(Expr { head, steps: Vec::new() }))
    }

    fn accessor(&mut self) -> Result<Step> {
        if self.take_symbol("[") {
            return self.deeper(Parser::subscripts);
        }
        if self.take_symbol("?") {
            self.expect("(")?;
            self.in_filter += 1;
            let filter = self.deeper(Parser::predicate)?;
            self.in_filter -= 1;
            self.expect(")")?;
            return Ok(Step::Filter(filter));
        }
        self.expect(".")?;
        if self.take_symbol("*") {
            return Ok(Step::AnyKey);
        }
        if self.take_symbol("**") {
            return self.descendants();
        }
        let called = *self.peek_second() == Token::Symbol("(");
        let (name, is_word) = match self.peek().clone() {
            Token::String(text) => (text, false),
            Token::Word { text, plain } => (text, plain),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        if !(called && is_word) {
            return Ok(Step::Key(name));
        }
        let methods =
            [Method::Type, Method::Size, Method::Abs, Method::Floor, Method::Ceiling, Method::Double, Method::KeyValue];
        let method = methods.into_iter().find(|method| is_keyword(&name, method.name()));
        let is_datetime = is_keyword(&name, "datetime");
        if method.is_none() && !is_datetime {
            return Err(self.unexpected());
        }
        self.advance();
        let mut template = None;
        if let (true, Token::String(text)) = (is_datetime, self.peek()) {
            template = Some(text.clone());
            self.advance();
        }
        self.expect(")")?;
        Ok(method.map_or(Step::DateTime(template), Step::Method))
    }

    fn subscripts(&mut self) -> Result<Step> {
        if self.is_symbol("*") && *self.peek_second() == Token::Symbol("]") {
            self.advance();
            self.advance();
            return Ok(Step::AnyElement);
        }
        self.in_subscript += 1;
        let mut list = Vec::new();
        loop {
            let from = self.expr()?;
            let to = if self.take_word("to") { Some(self.expr()?) } else { None };
            list.push((from, to));
            if !self.take_symbol(",") {
                break;
            }
        }
        self.in_subscript -= 1;
        self.expect("]")?;
        Ok(Step::Elements(list))
    }

    fn descendants(&mut self) -> Result<Step> {
        if !self.take_symbol("{") {
            return Ok(Step::Descendants { from: Some(0), to: None });
        }
        let from = self.level()?;
        let to = if self.take_word("to") { self.level()? } else { from };
        self.expect("}")?;
        Ok(Step::Descendants { from, to })
    }

    fn level(&mut self) -> Result<Option<u32>> {
        let level = match self.peek() {
            Token::Integer(text) => match text.parse::<i32>() {
                Ok(level) => Some(level as u32),
                Err(_) => return Err(Error::text_out_of_range("integer", text)),
            },
            _ if self.is_word("last") => None,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(level)
    }
}

/// Keywords are known in any case but for those of JSON.
fn is_keyword(text: &str, word: &str) -> bool {
    match word {
        "null" | "true" | "false" => text == word,
        word => text.eq_ignore_ascii_case(word),
    }
}

impl Pattern {
    /// As the regular expressions of [`are`] take them.
    pub(super) fn flags(&self) -> are::Flags {
        are::Flags {
            insensitive: self.insensitive,
            newline: !self.literal && !self.dot_all,
            line_anchors: !self.literal && self.multi_line,
            literal: self.literal,
            ..are::Flags::default()
        }
    }
}
