//! Forms of calls and operators that sqlparser does not read, in forms that it does (PostgreSQL manual 4.3, 9.4,
//! 4.1.2.7, 9.7, 9.24 and 9.26): `type 'literal'`, `trim(leading from x)`, `substring(x similar p escape e)`, `current_schema` without
//! parentheses, `@> any (array)`, `collation for (x)`, and `x like any (array)`.

use super::reader::is_word;
use sqlparser::ast::{self, Ident};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

pub(super) fn plain(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Open parentheses, and which of them belong to `substring`.
    let mut open: Vec<bool> = Vec::new();
    // Options of CREATE DATABASE have names that are no types.
    let is_database = tokens.get(1).is_some_and(|second| is_word(&second.token, "database"));
    let is_query = !is_database && tokens.first().is_some_and(|first| has_values(&first.token));
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map(|next| &next.token);
        let as_token = |token_type: Token| TokenWithSpan::new(token_type, token.span);
        match &token.token {
            Token::LParen => open.push(out.last().is_some_and(|name| is_word(&name.token, "substring"))),
            Token::RParen => {
                open.pop();
            }
            word if is_word(word, "from") && opens_trim(&out) => continue,
            word if is_word(word, "for") && out.last().is_some_and(|last| is_word(&last.token, "collation")) => {
                out.pop();
                out.push(as_token(Token::make_word("pg_collation_for", None)));
                continue;
            }
            word if open.last() == Some(&true) && (is_word(word, "similar") || is_word(word, "escape")) => {
                out.push(as_token(Token::Comma));
                continue;
            }
            word if is_like(word) && next.is_some_and(is_quantifier) => {
                let negated = out.last().is_some_and(|last| is_word(&last.token, "not"));
                if negated {
                    out.pop();
                }
                out.push(as_token(match (is_word(word, "ilike"), negated) {
                    (false, false) => Token::DoubleTilde,
                    (true, false) => Token::DoubleTildeAsterisk,
                    (false, true) => Token::ExclamationMarkDoubleTilde,
                    (true, true) => Token::ExclamationMarkDoubleTildeAsterisk,
                }));
                continue;
            }
            _ => {}
        }
        if is_quantifier(&token.token)
            && next == Some(&Token::LParen)
            && out.last().is_some_and(|last| is_other_operator(&last.token))
        {
            let name = if is_word(&token.token, "all") { EVERY_ELEMENT } else { ANY_ELEMENT };
            out.push(as_token(Token::make_word(name, Some('"'))));
            continue;
        }
        if is_string(&token.token) && is_query {
            let name = type_name_length(&out);
            if name > 0 {
                let name = out.split_off(out.len() - name);
                out.extend([token.clone(), as_token(Token::DoubleColon)]);
                out.extend(name);
                continue;
            }
            // `interval(3) '…'`.
            if let [.., name, open, decimals, close] = out.as_slice()
                && is_word(&name.token, "interval")
                && matches!(
                    (&open.token, &decimals.token, &close.token),
                    (Token::LParen, Token::Number(..), Token::RParen)
                )
            {
                let name = out.split_off(out.len() - 4);
                out.extend([token.clone(), as_token(Token::DoubleColon)]);
                out.extend(name);
                continue;
            }
            // Without a length these are as long as the literal.
            let whole = out.last().and_then(|name| whole_length(&name.token));
            if let Some(name) = whole {
                out.pop();
                out.extend([token.clone(), as_token(Token::DoubleColon), as_token(Token::make_word(name, Some('"')))]);
                continue;
            }
        }
        match &token.token {
            // `national character`, `nchar`.
            word if is_word(word, "national") && next.is_some_and(is_character) => continue,
            word if is_word(word, "nchar") && ends_in(&out, &[Token::DoubleColon]) => {
                out.push(as_token(Token::make_word("char", None)));
                continue;
            }
            word if is_word(word, "array") && is_array_type(&out, &tokens[at + 1..]) => {
                if next != Some(&Token::LBracket) {
                    out.extend([Token::LBracket, Token::RBracket].map(as_token));
                }
                continue;
            }
            _ => {}
        }
        if token.token == Token::Mul && ends_in(&out, &[Token::RParen, Token::Period]) {
            let mark = Token::make_word(ALL_FIELDS, Some('"'));
            out.push(TokenWithSpan::new(mark, token.span));
            continue;
        }
        out.push(token.clone());
        let is_role = is_word(&token.token, "current_role")
            && is_query
            && !["authorization", "to", "for", "role", "user"]
                .iter()
                .any(|word| tokens[..at].last().is_some_and(|last| is_word(&last.token, word)));
        if (is_role || is_word(&token.token, "current_schema")) && next != Some(&Token::LParen) {
            out.extend([Token::LParen, Token::RParen].map(as_token));
        }
    }
    out
}

/// Whether expressions may be in a statement that starts so, and strings after names are nothing else.
fn has_values(first: &Token) -> bool {
    let verbs = [
        "select", "with", "values", "insert", "update", "delete", "merge", "explain", "prepare", "execute", "declare",
        "create",
    ];
    *first == Token::LParen || verbs.iter().any(|verb| is_word(first, verb))
}

fn is_string(token: &Token) -> bool {
    matches!(token, Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_))
}

/// How many of the last tokens are a type's name that makes what follows a literal of the type, where sqlparser
/// does not know the name: `int4range '[1,2)'` is `'[1,2)'::int4range` (manual 4.1.2.7).
fn type_name_length(before: &[TokenWithSpan]) -> usize {
    let Some(Token::Word(last)) = before.last().map(|last| &last.token) else { return 0 };
    let is_plain = last.quote_style.is_some()
        || matches!(before, [.., period, _] if period.token == Token::Period)
        || (last.keyword == Keyword::NoKeyword
            && !["uescape", "symmetric", "asymmetric", "variadic"]
                .iter()
                .any(|word| last.value.eq_ignore_ascii_case(word)));
    if !is_plain && !["name", "oid", "money"].iter().any(|word| last.value.eq_ignore_ascii_case(word)) {
        return 0;
    }
    let mut length = 1;
    while let [.., name, period] = &before[..before.len() - length]
        && matches!((&name.token, &period.token), (Token::Word(_), Token::Period))
    {
        length += 2;
    }
    length
}

/// Of `char` and `bit` before a literal, the type without a length.
fn whole_length(name: &Token) -> Option<&'static str> {
    match name {
        word if is_character(word) => Some("bpchar"),
        word if is_word(word, "bit") => Some("bit"),
        _ => None,
    }
}

fn is_character(token: &Token) -> bool {
    is_word(token, "char") || is_word(token, "character")
}

/// Whether ARRAY stands behind a type's name, as in `integer ARRAY` and `integer ARRAY[4]` (manual 8.15.1).
fn is_array_type(before: &[TokenWithSpan], after: &[TokenWithSpan]) -> bool {
    const NAMES: [&str; 17] = [
        "int",
        "integer",
        "int2",
        "int4",
        "int8",
        "smallint",
        "bigint",
        "text",
        "varchar",
        "numeric",
        "decimal",
        "boolean",
        "bool",
        "date",
        "timestamp",
        "real",
        "precision",
    ];
    let after = after.iter().map(|token| &token.token).collect::<Vec<_>>();
    let ends = !matches!(after.as_slice(), [Token::LBracket | Token::LParen, ..])
        && !after.first().is_some_and(|next| is_string(next))
        || matches!(after.as_slice(), [Token::LBracket, Token::Number(..), Token::RBracket, ..]);
    ends && before.last().is_some_and(|last| NAMES.iter().any(|name| is_word(&last.token, name)))
}

fn is_like(token: &Token) -> bool {
    is_word(token, "like") || is_word(token, "ilike")
}

fn is_quantifier(token: &Token) -> bool {
    ["any", "some", "all"].iter().any(|word| is_word(token, word))
}

/// Operators after which sqlparser reads no ANY or ALL.
fn is_other_operator(token: &Token) -> bool {
    matches!(
        token,
        Token::AtArrow
            | Token::ArrowAt
            | Token::Overlap
            | Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::Mod
            | Token::StringConcat
            | Token::Ampersand
            | Token::Pipe
            | Token::Caret
            | Token::CaretAt
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::AmpersandLeftAngleBracket
            | Token::AmpersandRightAngleBracket
            | Token::Question
            | Token::QuestionAnd
            | Token::QuestionPipe
            | Token::AtQuestion
            | Token::AtAt
            | Token::CustomBinaryOperator(_)
    )
}

/// Stand for ANY and ALL after operators where sqlparser does not read them: as functions of the array.
const ANY_ELEMENT: &str = "*any";
const EVERY_ELEMENT: &str = "*all";

/// The array of `operator ANY (array)` that [`plain`] has written as a call, and whether it is ALL.
pub fn quantified(operand: &ast::Expr) -> Option<(&ast::Expr, bool)> {
    let ast::Expr::Function(function) = operand else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let all = match name.value.as_str() {
        ANY_ELEMENT => false,
        EVERY_ELEMENT => true,
        _ => return None,
    };
    match &function.args {
        ast::FunctionArguments::List(list) => match list.args.as_slice() {
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(array))] => Some((array, all)),
            _ => None,
        },
        _ => None,
    }
}

/// Stands for the star of `(value).*`, which sqlparser reads only after names.
const ALL_FIELDS: &str = "*";

/// The field by whose name [`plain`] asks for all of a composite value's fields.
pub fn all_fields_mark() -> Ident {
    Ident::with_quote('"', ALL_FIELDS)
}

fn ends_in(before: &[TokenWithSpan], tokens: &[Token]) -> bool {
    before.len() >= tokens.len()
        && before[before.len() - tokens.len()..].iter().zip(tokens).all(|(have, wanted)| have.token == *wanted)
}

/// Whether these end in `trim (`, perhaps with a side.
fn opens_trim(before: &[TokenWithSpan]) -> bool {
    let side = |token: &Token| ["leading", "trailing", "both"].iter().any(|side| is_word(token, side));
    let before = match before {
        [rest @ .., last] if side(&last.token) => rest,
        all => all,
    };
    matches!(before, [.., name, paren] if paren.token == Token::LParen && is_word(&name.token, "trim"))
}

/// Tokens as text that gives them again.
pub(super) fn text_of(tokens: &[TokenWithSpan]) -> String {
    let text = |token: &TokenWithSpan| match &token.token {
        Token::SingleQuotedString(text) => format!("'{}'", text.replace('\'', "''")),
        Token::EscapedStringLiteral(text) => {
            format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
        }
        Token::Word(word) if word.quote_style.is_some() => format!("\"{}\"", word.value.replace('"', "\"\"")),
        other => other.to_string(),
    };
    tokens.iter().map(text).collect::<Vec<_>>().join(" ")
}
