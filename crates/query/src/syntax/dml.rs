//! Forms of INSERT and MERGE that sqlparser does not read, in forms that it does, and the way back:
//!
//! | PostgreSQL | sqlparser |
//! |---|---|
//! | `INSERT INTO t (…) OVERRIDING SYSTEM VALUE` | `INSERT INTO t (…) PARTITION (system)` |
//! | `ON CONFLICT (lower(a), b COLLATE c) WHERE d DO` | `ON CONFLICT ("\u{1}elower(a)", b, "\u{1}wd") DO` |
//! | `WHEN MATCHED THEN DO NOTHING` | `WHEN MATCHED THEN UPDATE SET "\u{1}nothing" = 0` |
//! | `WHEN NOT MATCHED THEN DO NOTHING` | `WHEN NOT MATCHED THEN INSERT VALUES ("\u{1}nothing")` |
//! | `WHEN NOT MATCHED THEN INSERT DEFAULT VALUES` | `WHEN NOT MATCHED THEN INSERT VALUES ("\u{1}default")` |
//! | `WHEN NOT MATCHED THEN INSERT OVERRIDING SYSTEM VALUE VALUES (…)` | `… INSERT VALUES ("\u{1}system", …)` |
//! | `MERGE INTO t USING a JOIN b ON c ON d` | `MERGE INTO t USING (a JOIN b ON c) ON d` |
//! | `SELECT … INTO t FROM …` | `CREATE TABLE t AS SELECT … FROM …` |
//! | `FROM ONLY t`, `FROM ONLY (t)` | `FROM t`: nothing inherits |

use super::reader::is_word;
use crate::error::Result;
use sqlparser::ast;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// No name begins with it.
const MARK: char = '\u{1}';
/// OVERRIDING of MERGE.
const SYSTEM: &str = "system";
const USER: &str = "user";

/// The tokens of one statement in sqlparser's forms.
pub(super) fn plain(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let has = |word| tokens.iter().any(|token| is_word(&token.token, word));
    if !["overriding", "conflict", "merge", "only", "into"].into_iter().any(has) {
        return tokens;
    }
    let tokens = merge_join(select_into(tokens));
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 16);
    let mut at = 0;
    while at < tokens.len() {
        let sees = |words: &[&str]| {
            words.iter().enumerate().all(|(n, word)| tokens.get(at + n).is_some_and(|next| is_word(&next.token, word)))
        };
        let span = tokens[at].span;
        if sees(&["overriding", "system", "value"]) || sees(&["overriding", "user", "value"]) {
            let of_merge = out.iter().any(|before| is_word(&before.token, "merge"));
            let opens_values = is_word_at(&tokens, at + 3, "values")
                && tokens.get(at + 4).is_some_and(|open| open.token == Token::LParen);
            match (of_merge, opens_values) {
                (true, true) => {
                    let kind = if is_word_at(&tokens, at + 1, "system") { SYSTEM } else { USER };
                    out.extend_from_slice(&tokens[at + 3..at + 5]);
                    out.extend([marked(kind, span), TokenWithSpan::new(Token::Comma, span)]);
                    at += 5;
                }
                (true, false) => {
                    out.push(tokens[at].clone());
                    at += 1;
                }
                (false, _) => {
                    overriding(&mut out, tokens[at + 1].clone(), span);
                    at += 3;
                }
            }
        } else if sees(&["conflict"]) && out.last().is_some_and(|before| is_word(&before.token, "on")) {
            out.push(tokens[at].clone());
            at = conflict_target(&tokens, at + 1, &mut out);
        } else if sees(&["then", "do", "nothing"]) {
            out.push(tokens[at].clone());
            nothing(&mut out, span);
            at += 3;
        } else if sees(&["then", "insert", "default", "values"]) {
            out.extend_from_slice(&tokens[at..at + 2]);
            out.push(word("VALUES", None, span));
            in_parens(&mut out, vec![marked("default", span)], span);
            at += 4;
        } else if sees(&["only"]) && out.last().is_some_and(|before| names_follow(&before.token)) {
            at = only(&tokens, at + 1, &mut out);
        } else {
            out.push(tokens[at].clone());
            at += 1;
        }
    }
    out
}

/// MERGE … USING of a join: in parentheses.
fn merge_join(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    let Some(merge) = (0..tokens.len()).find(|at| is(*at, "merge") && is(at + 1, "into")) else { return tokens };
    let mut depth = 0;
    let (mut using, mut joined, mut condition, mut end) = (None, false, None, None);
    for (at, token) in tokens.iter().enumerate().skip(merge) {
        depth += nesting(&token.token);
        if depth != 0 {
            continue;
        }
        if using.is_none() && is(at, "using") {
            using = Some(at);
        } else if using.is_some() && is(at, "when") && (is(at + 1, "matched") || is(at + 1, "not")) {
            end = Some(at);
            break;
        } else if using.is_some() {
            joined |= is(at, "join");
            condition = if is(at, "on") { Some(at) } else { condition };
        }
    }
    let (Some(using), Some(condition), Some(_), true) = (using, condition, end, joined) else { return tokens };
    let mut out = tokens[..=using].to_vec();
    in_parens(&mut out, tokens[using + 1..condition].to_vec(), tokens[using].span);
    out.extend_from_slice(&tokens[condition..]);
    out
}

/// SELECT INTO in the form of CREATE TABLE AS.
fn select_into(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let first = explain_end(&tokens);
    let starts = |word| tokens.get(first).is_some_and(|first| is_word(&first.token, word));
    if !starts("select") && !starts("with") {
        return tokens;
    }
    let mut depth = 0;
    let mut into = None;
    for (at, token) in tokens.iter().enumerate().skip(first) {
        depth += nesting(&token.token);
        if depth == 0
            && ["insert", "merge", "union", "intersect", "except"].iter().any(|verb| is_word(&token.token, verb))
        {
            return tokens;
        }
        let is_name = at > 0 && tokens[at - 1].token == Token::Period;
        if depth == 0 && !is_name && is_word(&token.token, "into") {
            into = Some(at);
            break;
        }
    }
    let Some(into) = into else { return tokens };
    let is = |at: usize, words: &[&str]| {
        tokens.get(at).is_some_and(|token| words.iter().any(|word| is_word(&token.token, word)))
    };
    let mut name = into + 1;
    while is(name, &["temporary", "temp", "unlogged", "local", "global"]) {
        name += 1;
    }
    let kind = &tokens[into + 1..name];
    name += usize::from(is(name, &["table"]));
    let mut end = name + 1;
    while matches!(tokens.get(end).map(|token| &token.token), Some(Token::Period)) {
        end += 2;
    }
    if end > tokens.len() {
        return tokens;
    }
    let span = tokens[into].span;
    let mut out = tokens[..first].to_vec();
    out.push(word("CREATE", None, span));
    out.extend_from_slice(kind);
    out.push(word("TABLE", None, span));
    out.extend_from_slice(&tokens[name..end]);
    out.push(word("AS", None, span));
    out.extend_from_slice(&tokens[first..into]);
    out.extend_from_slice(&tokens[end..]);
    out
}

/// Behind EXPLAIN and its options; 0 of any other statement.
fn explain_end(tokens: &[TokenWithSpan]) -> usize {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    if !is(0, "explain") {
        return 0;
    }
    let mut at = 1;
    let (mut depth, start) = (0, at);
    while let Some(token) = tokens.get(at) {
        depth += nesting(&token.token);
        let in_options = depth > 0 || (at > start && token.token == Token::RParen);
        if !in_options && !is(at, "analyze") && !is(at, "verbose") {
            break;
        }
        at += 1;
    }
    at
}

fn is_word_at(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    tokens.get(at).is_some_and(|token| is_word(&token.token, word))
}

fn word(text: &str, quote: Option<char>, span: Span) -> TokenWithSpan {
    TokenWithSpan::new(Token::make_word(text, quote), span)
}

fn marked(text: &str, span: Span) -> TokenWithSpan {
    word(&format!("{MARK}{text}"), Some('"'), span)
}

fn in_parens(out: &mut Vec<TokenWithSpan>, inner: Vec<TokenWithSpan>, span: Span) {
    out.push(TokenWithSpan::new(Token::LParen, span));
    out.extend(inner);
    out.push(TokenWithSpan::new(Token::RParen, span));
}

/// `PARTITION (…)` in the place of OVERRIDING. Behind a bare table name sqlparser would take it for an alias: the
/// table gets one, its own name.
fn overriding(out: &mut Vec<TokenWithSpan>, kind: TokenWithSpan, span: Span) {
    if let [.., before, table] = out.as_slice()
        && matches!(table.token, Token::Word(_))
        && (is_word(&before.token, "into") || before.token == Token::Period)
    {
        let table = table.clone();
        out.extend([word("AS", None, span), table]);
    }
    out.push(word("PARTITION", None, span));
    in_parens(out, vec![kind], span);
}

fn nothing(out: &mut Vec<TokenWithSpan>, span: Span) {
    let matched = out.iter().rposition(|token| is_word(&token.token, "matched"));
    let negated = matched.and_then(|at| at.checked_sub(1)).is_some_and(|at| is_word(&out[at].token, "not"));
    if negated {
        out.extend([word("INSERT", None, span), word("VALUES", None, span)]);
        in_parens(out, vec![marked("nothing", span)], span);
    } else {
        out.extend([word("UPDATE", None, span), word("SET", None, span), marked("nothing", span)]);
        out.push(TokenWithSpan::new(Token::Eq, span));
        out.push(TokenWithSpan::new(Token::Number("0".into(), false), span));
    }
}

/// Whether the name of a relation may follow.
fn names_follow(before: &Token) -> bool {
    *before == Token::Comma || ["from", "update", "into", "join", "using"].iter().any(|known| is_word(before, known))
}

/// What follows ONLY, without parentheses; gives where to go on.
fn only(tokens: &[TokenWithSpan], at: usize, out: &mut Vec<TokenWithSpan>) -> usize {
    let kind = |n: usize| tokens.get(at + n).map(|token| &token.token);
    match (kind(0), kind(1), kind(2)) {
        (Some(Token::LParen), Some(Token::Word(_)), Some(Token::RParen)) => {
            out.push(tokens[at + 1].clone());
            at + 3
        }
        (Some(Token::Word(_)), ..) => at,
        _ => {
            out.push(tokens[at - 1].clone());
            at
        }
    }
}

/// A conflict target that starts here, its elements and its WHERE as identifiers; gives where to go on.
fn conflict_target(tokens: &[TokenWithSpan], start: usize, out: &mut Vec<TokenWithSpan>) -> usize {
    if tokens.get(start).map(|token| &token.token) != Some(&Token::LParen) {
        return start;
    }
    let mut elements: Vec<Vec<&TokenWithSpan>> = vec![Vec::new()];
    let mut depth = 0;
    let mut at = start + 1;
    loop {
        let Some(token) = tokens.get(at) else { return start };
        match token.token {
            Token::RParen if depth == 0 => break,
            Token::Comma if depth == 0 => elements.push(Vec::new()),
            _ => {
                depth += nesting(&token.token);
                elements.last_mut().expect("never empty").push(token);
            }
        }
        at += 1;
    }
    at += 1;
    let mut predicate: Vec<&TokenWithSpan> = Vec::new();
    if tokens.get(at).is_some_and(|token| is_word(&token.token, "where")) {
        at += 1;
        while let Some(token) = tokens.get(at).filter(|token| !is_word(&token.token, "do")) {
            predicate.push(token);
            at += 1;
        }
    }
    if elements.iter().any(Vec::is_empty) {
        return start;
    }
    let span = tokens[start].span;
    out.push(TokenWithSpan::new(Token::LParen, span));
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push(TokenWithSpan::new(Token::Comma, span));
        }
        out.push(match element.as_slice() {
            [name] if matches!(name.token, Token::Word(_)) => (*name).clone(),
            // A collation or an operator class behind a column.
            [name, rest @ ..] if matches!(name.token, Token::Word(_)) && is_qualified(rest) => (*name).clone(),
            tokens => marked(&format!("e{}", text(tokens)), tokens[0].span),
        });
    }
    if !predicate.is_empty() {
        out.push(TokenWithSpan::new(Token::Comma, span));
        out.push(marked(&format!("w{}", text(&predicate)), predicate[0].span));
    }
    out.push(TokenWithSpan::new(Token::RParen, span));
    at
}

fn nesting(token: &Token) -> i32 {
    match token {
        Token::LParen | Token::LBracket => 1,
        Token::RParen | Token::RBracket => -1,
        _ => 0,
    }
}

fn is_qualified(rest: &[&TokenWithSpan]) -> bool {
    match rest {
        [class] => matches!(class.token, Token::Word(_)),
        [collate, .., _] => is_word(&collate.token, "collate"),
        [] => false,
    }
}

fn text(tokens: &[&TokenWithSpan]) -> String {
    tokens.iter().map(|token| token.token.to_string()).collect::<Vec<_>>().join(" ")
}

/// An element of a conflict target.
pub struct ConflictElement {
    pub expr: ast::Expr,
    /// A column's name.
    pub is_plain: bool,
    /// Not an element, but the target's WHERE.
    pub is_predicate: bool,
}

/// What an identifier of a conflict target stands for.
pub fn conflict_element(ident: &ast::Ident) -> Result<ConflictElement> {
    let Some(text) = ident.value.strip_prefix(MARK) else {
        return Ok(ConflictElement { expr: ast::Expr::Identifier(ident.clone()), is_plain: true, is_predicate: false });
    };
    let (kind, text) = text.split_at(text.len().min(1));
    let expr = super::parse_expr_text(text)?;
    Ok(ConflictElement { expr, is_plain: false, is_predicate: kind == "w" })
}

fn is_marked(ident: &ast::Ident, text: &str) -> bool {
    ident.value.strip_prefix(MARK) == Some(text)
}

/// Whether an action of MERGE stands for DO NOTHING.
pub fn is_merge_nothing(action: &ast::MergeAction) -> bool {
    match action {
        ast::MergeAction::Update(update) => match update.assignments.as_slice() {
            [ast::Assignment { target: ast::AssignmentTarget::ColumnName(name), .. }] => {
                name.0.first().and_then(|part| part.as_ident()).is_some_and(|ident| is_marked(ident, "nothing"))
            }
            _ => false,
        },
        ast::MergeAction::Insert(insert) => is_only_value(insert, "nothing"),
        ast::MergeAction::Delete { .. } => false,
    }
}

/// Whether an INSERT of MERGE stands for DEFAULT VALUES.
pub fn is_merge_default_values(insert: &ast::MergeInsertExpr) -> bool {
    is_only_value(insert, "default")
}

/// The values of a MERGE's INSERT, and what OVERRIDING says before them.
pub fn merge_values(row: &[ast::Expr]) -> (&[ast::Expr], Option<&'static str>) {
    let [ast::Expr::Identifier(ident), values @ ..] = row else { return (row, None) };
    match [SYSTEM, USER].into_iter().find(|kind| is_marked(ident, kind)) {
        Some(kind) => (values, Some(kind)),
        None => (row, None),
    }
}

fn is_only_value(insert: &ast::MergeInsertExpr, text: &str) -> bool {
    let ast::MergeInsertKind::Values(values) = &insert.kind else { return false };
    match values.rows.as_slice() {
        [row] => matches!(row.content.as_slice(), [ast::Expr::Identifier(ident)] if is_marked(ident, text)),
        _ => false,
    }
}
