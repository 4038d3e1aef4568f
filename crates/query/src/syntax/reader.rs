//! A walk over the tokens of one statement, with PostgreSQL's syntax errors.

use super::chains;
use super::dialect::Postgres15;
use crate::error::{Result, SqlError};
use basalt_expr::words;
use sqlparser::ast::{self, VisitMut};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

static DIALECT: Postgres15 = Postgres15;

/// Parentheses, subqueries and calls inside each other (54001 beyond).
const DEPTH_MAX: usize = 300;

/// A relation or other object as a statement names it; unquoted parts are folded to lower case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    pub schema: Option<String>,
    pub name: String,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

type Parsed<T> = std::result::Result<T, ParserError>;

pub struct Reader<'a> {
    parser: Parser<'static>,
    sql: &'a str,
    /// Whether AND and OR may have many operands.
    is_long: bool,
}

impl<'a> Reader<'a> {
    /// `sql` is the whole text that the tokens' positions refer to.
    pub fn new(tokens: Vec<TokenWithSpan>, sql: &'a str) -> Reader<'a> {
        let is_long = chains::is_long(&tokens);
        let parser = Parser::new(&DIALECT).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens);
        Reader { parser, sql, is_long }
    }

    fn parsed<T: VisitMut>(&mut self, parse: impl FnOnce(&mut Parser<'static>) -> Parsed<T>) -> Result<T> {
        let mut tree = parse(&mut self.parser).map_err(|error| parse_error(error, self.sql))?;
        if self.is_long {
            chains::lower(&mut tree);
        }
        Ok(tree)
    }

    pub fn peek(&self) -> &Token {
        &self.parser.peek_token_ref().token
    }

    pub fn at_end(&self) -> bool {
        matches!(self.peek(), Token::EOF)
    }

    /// Whether the next token is this word, unquoted.
    pub fn sees(&self, word: &str) -> bool {
        self.sees_nth(0, word)
    }

    pub fn sees_nth(&self, n: usize, word: &str) -> bool {
        is_word(&self.parser.peek_nth_token_ref(n).token, word)
    }

    /// Takes the word if it is next.
    pub fn word(&mut self, word: &str) -> bool {
        let found = self.sees(word);
        if found {
            self.skip();
        }
        found
    }

    /// Takes all of these words if they are next, or none.
    pub fn words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(n, word)| self.sees_nth(n, word));
        if found {
            words.iter().for_each(|_| self.skip());
        }
        found
    }

    pub fn nth_is_eq(&self, n: usize) -> bool {
        matches!(self.parser.peek_nth_token_ref(n).token, Token::Eq)
    }

    /// Whether no token is there.
    pub fn nth_is_end(&self, n: usize) -> bool {
        matches!(self.parser.peek_nth_token_ref(n).token, Token::EOF)
    }

    pub fn nth_is_left_paren(&self, n: usize) -> bool {
        matches!(self.parser.peek_nth_token_ref(n).token, Token::LParen)
    }

    pub fn nth_is_right_paren(&self, n: usize) -> bool {
        matches!(self.parser.peek_nth_token_ref(n).token, Token::RParen)
    }

    /// Whether the token ends an item of a list: a comma or a closing parenthesis.
    pub fn nth_is_list_item_end(&self, n: usize) -> bool {
        matches!(self.parser.peek_nth_token_ref(n).token, Token::Comma | Token::RParen)
    }

    pub fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.word(word) { Ok(()) } else { Err(self.error_here()) }
    }

    /// Takes one of the words and tells which.
    pub fn one_of(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().find(|word| self.sees(word))?;
        self.skip();
        Some(found)
    }

    pub fn token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    pub fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.token(token) { Ok(()) } else { Err(self.error_here()) }
    }

    pub fn skip(&mut self) {
        self.parser.next_token();
    }

    pub fn take_token(&mut self) -> Token {
        self.parser.next_token().token
    }

    pub fn expect_end(&self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.error_here()) }
    }

    /// `IF EXISTS`.
    pub fn if_exists(&mut self) -> bool {
        self.words(&["if", "exists"])
    }

    /// `IF NOT EXISTS`.
    pub fn if_not_exists(&mut self) -> bool {
        self.words(&["if", "not", "exists"])
    }

    /// An identifier, folded.
    pub fn ident(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(_) => match self.take_token() {
                Token::Word(word) => Ok(fold(&word.value, word.quote_style.is_some())),
                _ => Err(self.error_here()),
            },
            _ => Err(self.error_here()),
        }
    }

    /// An identifier that names a column, a table or whatever else has a name of its own: no word that is reserved.
    pub fn name(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(word) if word.quote_style.is_none() && words::is_reserved(&word.value) => {
                Err(self.error_here())
            }
            _ => self.ident(),
        }
    }

    pub fn names_in_parens(&mut self) -> Result<Vec<String>> {
        self.list_in_parens(Reader::name)
    }

    /// One or more, with commas between and parentheses around.
    pub fn list_in_parens<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_token(&Token::LParen)?;
        let items = self.list(item)?;
        self.expect_token(&Token::RParen)?;
        Ok(items)
    }

    /// `name`, `schema.name` or `database.schema.name`.
    pub fn object_name(&mut self) -> Result<Name> {
        let first = self.name()?;
        self.qualified(first)
    }

    /// The same of what has other reserved words: types, functions, roles.
    pub fn other_name(&mut self) -> Result<Name> {
        let first = self.ident()?;
        self.qualified(first)
    }

    fn qualified(&mut self, first: String) -> Result<Name> {
        let mut parts = vec![first];
        while self.token(&Token::Period) {
            parts.push(self.ident()?);
        }
        if parts.len() > 3 {
            let name = parts.join(".");
            return Err(SqlError::syntax(format!("improper qualified name (too many dotted names): {name}")));
        }
        let name = parts.pop().unwrap_or_default();
        Ok(Name { schema: parts.pop(), name })
    }

    /// One or more, with commas between.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// A string literal, if one is next.
    pub fn string_opt(&mut self) -> Option<String> {
        let text = match self.peek() {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
            Token::UnicodeStringLiteral(text) => text.clone(),
            Token::DollarQuotedString(text) => text.value.clone(),
            _ => return None,
        };
        self.skip();
        Some(text)
    }

    pub fn string(&mut self) -> Result<String> {
        self.string_opt().ok_or_else(|| self.error_here())
    }

    /// A number as written, with its sign, if one is next.
    pub fn number_opt(&mut self) -> Option<String> {
        let (sign, at) = match self.peek() {
            Token::Minus => ("-", 1),
            Token::Plus => ("", 1),
            _ => ("", 0),
        };
        let Token::Number(digits, _) = &self.parser.peek_nth_token_ref(at).token else { return None };
        let text = format!("{sign}{digits}");
        (0..=at).for_each(|_| self.skip());
        Some(text)
    }

    pub fn integer(&mut self) -> Result<i64> {
        let error = self.error_here();
        self.number_opt().and_then(|text| text.parse().ok()).ok_or(error)
    }

    pub fn expr(&mut self) -> Result<ast::Expr> {
        self.parsed(|parser| parser.parse_expr())
    }

    pub fn query(&mut self) -> Result<Box<ast::Query>> {
        self.parsed(|parser| parser.parse_query())
    }

    pub fn data_type(&mut self) -> Result<ast::DataType> {
        self.parser.parse_data_type().map_err(|error| parse_error(error, self.sql))
    }

    /// A column's option other than CHECK and GENERATED, if one is next. A default ends before NOT NULL here.
    pub fn column_option(&mut self) -> Result<Option<ast::ColumnOption>> {
        self.parsed(|parser| parser.parse_optional_column_option())
    }

    /// A dotted name as sqlparser has it.
    pub fn sql_name(&mut self) -> Result<ast::ObjectName> {
        self.parser.parse_object_name(false).map_err(|error| parse_error(error, self.sql))
    }

    pub fn table_constraint(&mut self) -> Result<Option<ast::TableConstraint>> {
        self.parsed(|parser| parser.parse_optional_table_constraint())
    }

    /// One of the statements whose grammar is sqlparser's.
    pub fn statement(&mut self) -> Result<ast::Statement> {
        self.parsed(|parser| parser.parse_statement())
    }

    /// Character of the next token, from 1.
    pub fn position(&self) -> Option<u32> {
        position_of(self.sql, self.parser.peek_token_ref().span.start)
    }

    #[cold]
    pub fn error_here(&self) -> SqlError {
        match self.peek() {
            Token::EOF => {
                SqlError::syntax("syntax error at end of input").at(u32::try_from(self.sql.chars().count() + 1).ok())
            }
            token => SqlError::syntax(format!("syntax error at or near \"{token}\"")).at(self.position()),
        }
    }
}

pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// An identifier as the catalog knows it.
pub fn fold(value: &str, quoted: bool) -> String {
    let mut name = if quoted { value.to_string() } else { value.to_lowercase() };
    if name.len() > 63 {
        let end = (0..=63).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        name.truncate(end);
    }
    name
}

/// The character that a location means, from 1; `None` for none.
pub(super) fn position_of(sql: &str, location: Location) -> Option<u32> {
    if location.line == 0 {
        return None;
    }
    let before: usize =
        sql.split_inclusive('\n').take(location.line as usize - 1).map(|line| line.chars().count()).sum();
    u32::try_from(before + location.column as usize).ok()
}

/// sqlparser's error in PostgreSQL's words.
#[cold]
pub fn parse_error(error: ParserError, sql: &str) -> SqlError {
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        ParserError::RecursionLimitExceeded => {
            return SqlError::new("54001", "stack depth limit exceeded")
                .with_hint("Write the statement with less nesting.");
        }
    };
    let (text, place) = match message.rsplit_once(" at Line: ") {
        Some((text, place)) => (text, Some(place)),
        None => (message.as_str(), None),
    };
    let position = place.and_then(|place| {
        let (line, column) = place.split_once(", Column: ")?;
        let digits: String = column.chars().take_while(char::is_ascii_digit).collect();
        position_of(sql, Location { line: line.trim().parse().ok()?, column: digits.parse().ok()? })
    });
    let token = position.and_then(|position| token_at(sql, position));
    match (text.split_once(", found: "), token) {
        (Some((_, "EOF")), _) => {
            SqlError::syntax("syntax error at end of input").at(u32::try_from(sql.chars().count() + 1).ok())
        }
        (None, _) if text.starts_with("Unterminated") => SqlError::syntax(lower_first(text)).at(position),
        (Some((expected, _)), Some(token)) => SqlError::syntax(format!("syntax error at or near \"{token}\""))
            .at(position)
            .with_detail(format!("{}.", expected.replacen("Expected: ", "Expected ", 1))),
        (Some((_, found)), None) => SqlError::syntax(format!("syntax error at or near \"{found}\"")),
        (None, Some(token)) => {
            SqlError::syntax(format!("syntax error at or near \"{token}\"")).at(position).with_detail(sentence(text))
        }
        (None, None) => SqlError::syntax(format!("syntax error: {}", lower_first(text))),
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).chain(['.']).collect()
}

/// The token as it is written at a character, counted from 1; `None` at the end.
fn token_at(sql: &str, position: u32) -> Option<String> {
    let start = sql.char_indices().nth((position as usize).checked_sub(1)?)?.0;
    let text = &sql[start..];
    let length = |is_part: &dyn Fn(char) -> bool| text.find(|char: char| !is_part(char)).unwrap_or(text.len());
    let is_name = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
    let end = match text.chars().next()? {
        first if first.is_whitespace() => return None,
        first if first.is_ascii_digit() => length(&|char| char.is_ascii_digit() || char == '.'),
        quote @ ('\'' | '"') => text[1..].find(quote).map_or(text.len(), |end| end + 2),
        first if first.is_alphabetic() || first == '_' => length(&is_name),
        '$' => 1 + text[1..].find(|char: char| !is_name(char)).unwrap_or(text.len() - 1),
        ':' if text.starts_with("::") || text.starts_with(":=") => 2,
        first if "+-*/<>=~!@#%^&|`?".contains(first) => length(&|char| "+-*/<>=~!@#%^&|`?".contains(char)),
        first => first.len_utf8(),
    };
    Some(text[..end].to_string())
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
