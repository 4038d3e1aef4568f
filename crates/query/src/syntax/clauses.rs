//! Clauses of SELECT that sqlparser does not read, or reads in part, in forms that it does.
//!
//! | written | read as |
//! |---|---|
//! | `(… ORDER BY x ROWS … EXCLUDE TIES)` | `(… ORDER BY x, "exclude ties"() ROWS …)` |
//! | `RANGE '1 day' PRECEDING` | `RANGE ('1 day') PRECEDING` |
//! | `GROUPING SETS ((a), (), …)` | `"grouping sets"((a), "empty grouping set"(), …)` |
//! | `GROUP BY DISTINCT a` | `GROUP BY "group by distinct"(), a` |
//! | `FETCH FIRST n ROWS ONLY`, `… WITH TIES` | `LIMIT (n)`, `LIMIT "with ties"(n)` |
//! | `ORDER BY x USING > NULLS LAST` | `ORDER BY x DESC NULLS LAST` |
//! | `ORDER BY x USING =` | `ORDER BY x, "using operator"('=')` |
//! | `TABLESAMPLE m (p) REPEATABLE (s)` | `TABLESAMPLE BERNOULLI ("tablesample"('m', p, "repeatable"(s)))` |

#[cfg(test)]
mod tests;

use super::reader::is_word;
use basalt_expr::window::Exclude;
use sqlparser::ast;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

const EXCLUSIONS: [(Exclude, &str, &[&str]); 4] = [
    (Exclude::CurrentRow, "exclude current row", &["current", "row"]),
    (Exclude::Group, "exclude group", &["group"]),
    (Exclude::Ties, "exclude ties", &["ties"]),
    (Exclude::NoOthers, "exclude no others", &["no", "others"]),
];
pub(crate) const GROUPING_SETS: &str = "grouping sets";
pub(crate) const EMPTY_SET: &str = "empty grouping set";
pub(crate) const GROUP_BY_DISTINCT: &str = "group by distinct";
pub(crate) const WITH_TIES: &str = "with ties";
pub(crate) const USING_OPERATOR: &str = "using operator";
pub(crate) const TABLESAMPLE: &str = "tablesample";
pub(crate) const REPEATABLE: &str = "repeatable";

/// The arguments of a call by one of the names above.
pub(crate) fn marked<'a>(expr: &'a ast::Expr, marker: &str) -> Option<Vec<&'a ast::Expr>> {
    let ast::Expr::Function(function) = expr else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    if name.quote_style.is_none() || name.value != marker {
        return None;
    }
    let ast::FunctionArguments::List(list) = &function.args else { return None };
    let args = list.args.iter().filter_map(|arg| match arg {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    Some(args.collect())
}

/// What a frame excludes, if this stands for it.
pub(crate) fn exclude_marker(expr: &ast::Expr) -> Option<Exclude> {
    EXCLUSIONS.iter().find(|(_, marker, _)| marked(expr, marker).is_some()).map(|(exclude, ..)| *exclude)
}

/// The tokens of one statement in the forms above.
pub(super) fn written(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const WORDS: [&str; 8] = ["exclude", "preceding", "following", "sets", "group", "fetch", "using", "tablesample"];
    if !tokens.iter().any(|token| WORDS.iter().any(|word| is_word(&token.token, word))) {
        return tokens;
    }
    let mut writer = Writer { tokens: &tokens, at: 0, out: Vec::with_capacity(tokens.len() + 16), sets: Vec::new() };
    while writer.at < tokens.len() {
        writer.step();
    }
    writer.out
}

struct Writer<'a> {
    tokens: &'a [TokenWithSpan],
    at: usize,
    out: Vec<TokenWithSpan>,
    /// Of each open parenthesis, whether it lists grouping sets.
    sets: Vec<bool>,
}

impl Writer<'_> {
    fn step(&mut self) {
        let done = self.exclusion()
            || self.frame_literal()
            || self.grouping_sets()
            || self.group_by()
            || self.fetch()
            || self.using()
            || self.sample();
        if !done {
            self.copy();
        }
    }

    fn sees(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| self.is(at + n, word))
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| is_word(&token.token, word))
    }

    fn token(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at).map(|token| &token.token)
    }

    fn span(&self) -> Span {
        self.tokens.get(self.at).map_or_else(Span::empty, |token| token.span)
    }

    fn copy(&mut self) {
        let token = self.tokens[self.at].clone();
        match token.token {
            Token::LParen => self.sets.push(false),
            Token::RParen => {
                self.sets.pop();
            }
            _ => {}
        }
        self.out.push(token);
        self.at += 1;
    }

    fn put(&mut self, token: Token) {
        let span = self.span();
        self.out.push(TokenWithSpan::new(token, span));
    }

    fn put_name(&mut self, name: &str) {
        self.put(Token::make_word(name, Some('"')));
    }

    fn put_word(&mut self, word: &str) {
        self.put(Token::make_word(word, None));
    }

    /// The parenthesis that closes the one at `open`.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        for at in open..self.tokens.len() {
            match self.token(at)? {
                Token::LParen => depth += 1,
                Token::RParen => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn exclusion(&mut self) -> bool {
        if !self.is(self.at, "exclude") {
            return false;
        }
        let found = EXCLUSIONS.iter().find(|(_, _, words)| {
            self.sees(self.at + 1, words) && self.token(self.at + 1 + words.len()) == Some(&Token::RParen)
        });
        let Some((exclude, marker, words)) = found else { return false };
        let Some((units, ordered)) = self.frame_begin() else { return false };
        if *exclude != Exclude::NoOthers {
            let frame = self.out.split_off(units);
            if ordered {
                self.put(Token::Comma);
            } else {
                self.put_word("ORDER");
                self.put_word("BY");
            }
            self.put_name(marker);
            self.put(Token::LParen);
            self.put(Token::RParen);
            self.out.extend(frame);
        }
        self.at += 1 + words.len();
        true
    }

    /// Where the units of the frame stand that has just been written, and whether its window has an order.
    fn frame_begin(&self) -> Option<(usize, bool)> {
        let mut depth = 0usize;
        let mut units = None;
        let mut ordered = false;
        for (at, token) in self.out.iter().enumerate().rev() {
            match token.token {
                Token::RParen => depth += 1,
                Token::LParen if depth == 0 => break,
                Token::LParen => depth -= 1,
                _ if depth > 0 => {}
                _ if units.is_none() => {
                    units = ["rows", "range", "groups"].iter().any(|word| is_word(&token.token, word)).then_some(at);
                }
                _ => {
                    ordered |= is_word(&token.token, "order")
                        && self.out.get(at + 1).is_some_and(|next| is_word(&next.token, "by"));
                }
            }
        }
        units.map(|units| (units, ordered))
    }

    /// A string that begins the offset of a frame's bound.
    fn frame_literal(&mut self) -> bool {
        if !matches!(self.token(self.at), Some(Token::SingleQuotedString(_))) {
            return false;
        }
        let before = ["between", "and", "rows", "range", "groups"];
        if !self.out.last().is_some_and(|last| before.iter().any(|word| is_word(&last.token, word))) {
            return false;
        }
        let mut end = self.at + 1;
        loop {
            match self.token(end) {
                None | Some(Token::Comma | Token::RParen) => return false,
                Some(Token::LParen) => match self.closing(end) {
                    Some(close) => end = close,
                    None => return false,
                },
                _ if self.is(end, "preceding") || self.is(end, "following") => break,
                _ if self.is(end, "and") => return false,
                _ => {}
            }
            end += 1;
        }
        self.put(Token::LParen);
        self.out.extend_from_slice(&self.tokens[self.at..end]);
        self.put(Token::RParen);
        self.at = end;
        true
    }

    fn grouping_sets(&mut self) -> bool {
        if self.sees(self.at, &["grouping", "sets"]) && self.token(self.at + 2) == Some(&Token::LParen) {
            self.put_name(GROUPING_SETS);
            self.at += 2;
            self.put(Token::LParen);
            self.at += 1;
            self.sets.push(true);
            return true;
        }
        let empty = self.token(self.at) == Some(&Token::LParen) && self.token(self.at + 1) == Some(&Token::RParen);
        let lists = self.sets.last() == Some(&true);
        let at_item = matches!(self.out.last().map(|last| &last.token), Some(Token::LParen | Token::Comma));
        if empty && lists && at_item {
            self.put_name(EMPTY_SET);
            self.put(Token::LParen);
            self.put(Token::RParen);
            self.at += 2;
            return true;
        }
        false
    }

    fn group_by(&mut self) -> bool {
        if !self.sees(self.at, &["group", "by"]) {
            return false;
        }
        let (distinct, all) = (self.is(self.at + 2, "distinct"), self.is(self.at + 2, "all"));
        let has_items = !matches!(self.token(self.at + 3), None | Some(Token::RParen | Token::SemiColon));
        if !has_items || !(distinct || all) {
            return false;
        }
        self.copy();
        self.copy();
        if distinct {
            self.put_name(GROUP_BY_DISTINCT);
            self.put(Token::LParen);
            self.put(Token::RParen);
            self.put(Token::Comma);
        }
        self.at += 1;
        true
    }

    /// Not the statement of that name, which begins a text.
    fn fetch(&mut self) -> bool {
        let starts = self.sees(self.at, &["fetch", "first"]) || self.sees(self.at, &["fetch", "next"]);
        if !starts || self.at == 0 {
            return false;
        }
        let first = self.at + 2;
        let mut end = first;
        while !self.is(end, "row") && !self.is(end, "rows") {
            match self.token(end) {
                None | Some(Token::RParen) => return false,
                Some(Token::LParen) => match self.closing(end) {
                    Some(close) => end = close + 1,
                    None => return false,
                },
                _ => end += 1,
            }
        }
        let ties = self.sees(end + 1, &["with", "ties"]);
        if !ties && !self.is(end + 1, "only") {
            // Not a clause: an error where LIMIT has none of this.
            self.put_word("LIMIT");
            self.at += 1;
            return true;
        }
        self.put_word("LIMIT");
        if ties {
            self.put_name(WITH_TIES);
        }
        self.put(Token::LParen);
        match first == end {
            true => self.put(Token::Number("1".into(), false)),
            false => self.out.extend_from_slice(&self.tokens[first..end]),
        }
        self.put(Token::RParen);
        self.at = end + if ties { 3 } else { 2 };
        true
    }

    /// `USING operator` of ORDER BY.
    fn using(&mut self) -> bool {
        if !self.is(self.at, "using") {
            return false;
        }
        let (symbol, next) = match self.token(self.at + 1) {
            Some(Token::Word(_)) if self.is(self.at + 1, "operator") => {
                let Some(close) = self.closing(self.at + 2) else { return false };
                match self.token(close - 1) {
                    Some(token) => (token.to_string(), close + 1),
                    None => return false,
                }
            }
            Some(token) => (token.to_string(), self.at + 2),
            None => return false,
        };
        if symbol.is_empty() || !symbol.chars().all(|char| "+-*/<>=~!@#%^&|`?".contains(char)) {
            return false;
        }
        match symbol.as_str() {
            "<" | "~<~" => self.put_word("ASC"),
            ">" | "~>~" => self.put_word("DESC"),
            _ => {}
        }
        let ordering = matches!(symbol.as_str(), "<" | ">" | "~<~" | "~>~");
        self.at = next;
        if self.is(self.at, "nulls") && (self.is(self.at + 1, "first") || self.is(self.at + 1, "last")) {
            self.copy();
            self.copy();
        }
        if !ordering {
            self.put(Token::Comma);
            self.put_name(USING_OPERATOR);
            self.put(Token::LParen);
            self.put(Token::SingleQuotedString(symbol));
            self.put(Token::RParen);
        }
        true
    }

    fn sample(&mut self) -> bool {
        if !self.is(self.at, "tablesample") || self.token(self.at + 2) != Some(&Token::LParen) {
            return false;
        }
        let Some(Token::Word(method)) = self.token(self.at + 1) else { return false };
        let method = super::fold(&method.value, method.quote_style.is_some());
        let Some(close) = self.closing(self.at + 2) else { return false };
        let args = self.at + 3..close;
        let mut end = close + 1;
        let mut seed = None;
        if self.is(end, "repeatable") && self.token(end + 1) == Some(&Token::LParen) {
            let Some(close) = self.closing(end + 1) else { return false };
            seed = Some(end + 2..close);
            end = close + 1;
        }
        self.copy();
        self.put_word("BERNOULLI");
        self.put(Token::LParen);
        self.put_name(TABLESAMPLE);
        self.put(Token::LParen);
        self.put(Token::SingleQuotedString(method));
        if !args.is_empty() {
            self.put(Token::Comma);
            self.out.extend_from_slice(&self.tokens[args]);
        }
        if let Some(seed) = seed {
            self.put(Token::Comma);
            self.put_name(REPEATABLE);
            self.put(Token::LParen);
            self.out.extend_from_slice(&self.tokens[seed]);
            self.put(Token::RParen);
        }
        self.put(Token::RParen);
        self.put(Token::RParen);
        self.at = end;
        true
    }
}
