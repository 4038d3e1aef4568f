//! sqlparser's PostgreSQL dialect, less what came after version 15 and what takes exponential time: to try each
//! argument of a call as the name of one doubles the work with every level of nesting.

use super::nested;
use basalt_expr::words::{self, KeyWord};
use sqlparser::ast::Expr;
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::{ALL_KEYWORDS, Keyword};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::any::TypeId;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Postgres15;

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

macro_rules! as_postgres {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            BASE.$name()
        })*
    };
}

/// Words that are nobody's name, and begin no expression.
fn is_reserved(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && is_reserved_word(&word.keyword))
}

fn is_reserved_word(keyword: &Keyword) -> bool {
    use Keyword::*;
    matches!(
        keyword,
        ANALYZE
            | AND
            | AS
            | ASC
            | ASYMMETRIC
            | CHECK
            | COLLATE
            | COLUMN
            | CONSTRAINT
            | CREATE
            | DEFERRABLE
            | DESC
            | DO
            | ELSE
            | END
            | EXCEPT
            | FETCH
            | FOR
            | FOREIGN
            | FROM
            | GRANT
            | GROUP
            | HAVING
            | IN
            | INTERSECT
            | INTO
            | LIMIT
            | OFFSET
            | ON
            | ONLY
            | OR
            | ORDER
            | PRIMARY
            | REFERENCES
            | RETURNING
            | THEN
            | TO
            | UNION
            | UNIQUE
            | USING
            | WHEN
            | WHERE
            | WINDOW
            | WITH
    )
}

/// PostgreSQL's key word that one of the parser's is, if it is one.
fn key_word(keyword: &Keyword) -> Option<&'static KeyWord> {
    let at = (*keyword as usize).checked_sub(1)?;
    words::find(ALL_KEYWORDS.get(at)?)
}

impl Dialect for Postgres15 {
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        BASE.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        BASE.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        BASE.is_identifier_part(ch)
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        BASE.is_reserved_for_identifier(kw)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        BASE.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        BASE.get_next_precedence(parser)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match is_reserved(&parser.peek_token_ref().token) {
            true => Some(parser.expected_ref("an expression", parser.peek_token_ref())),
            false => nested::operand(parser),
        }
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, _: u8) -> Option<Result<Expr, ParserError>> {
        nested::behind(parser, left)
    }

    /// Behind AS any word; without it, what can begin nothing else there.
    fn is_select_item_alias(&self, explicit: bool, keyword: &Keyword, _: &mut Parser) -> bool {
        explicit || key_word(keyword).is_none_or(|known| known.bare_label)
    }

    /// SET follows the table of UPDATE.
    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, _: &mut Parser) -> bool {
        let may_name = key_word(keyword).is_none_or(KeyWord::names_column);
        may_name && (explicit || *keyword != Keyword::SET)
    }

    /// The place where SEARCH and CYCLE of a recursive query stand (`syntax::recursion`).
    fn supports_from_first_insert(&self) -> bool {
        true
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        BASE.prec_value(prec)
    }

    as_postgres!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_empty_projections,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_set_names,
        supports_alter_column_type_using,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
    );
}
