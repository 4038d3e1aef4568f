use super::written;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

/// The statement as it is handed to sqlparser, one space between tokens.
fn rewritten(sql: &str) -> String {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
    let tokens = tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    let words: Vec<String> = written(tokens.collect()).iter().map(|token| token.token.to_string()).collect();
    words.join(" ")
}

#[track_caller]
fn check(sql: &str, expected: &str) {
    assert_eq!(rewritten(sql), expected);
}

#[test]
fn frames() {
    check(
        "over (order by x rows 1 preceding exclude ties)",
        "over ( order by x , \"exclude ties\" ( ) rows 1 preceding )",
    );
    check(
        "over (partition by f(order1) range current row exclude group)",
        "over ( partition by f ( order1 ) ORDER BY \"exclude group\" ( ) range current row )",
    );
    check("(rows 1 preceding exclude no others)", "( rows 1 preceding )");
    check("range between '1 day'::interval preceding", "range between ( '1 day' :: interval ) preceding");
    check("x between '1' and '2'", "x between '1' and '2'");
    check("select exclude from group_by", "select exclude from group_by");
}

#[test]
fn groups() {
    check(
        "group by grouping sets ((), (a, b), rollup (a), grouping sets (()))",
        "group by \"grouping sets\" ( \"empty grouping set\" ( ) , ( a , b ) , rollup ( a ) , \
         \"grouping sets\" ( \"empty grouping set\" ( ) ) )",
    );
    check("group by distinct a, b", "group by \"group by distinct\" ( ) , a , b");
    check("group by all a", "group by a");
    check("group by f()", "group by f ( )");
}

#[test]
fn limits_and_orders() {
    check("select 1 fetch first 3 + 1 rows only", "select 1 LIMIT ( 3 + 1 )");
    check("select 1 fetch next row with ties", "select 1 LIMIT \"with ties\" ( 1 )");
    check("fetch first from c", "fetch first from c");
    check("order by x using > nulls last, y", "order by x DESC nulls last , y");
    check("order by x using operator(pg_catalog.<)", "order by x ASC");
    check("order by x using = nulls last", "order by x nulls last , \"using operator\" ( '=' )");
    check("a join b using (c)", "a join b using ( c )");
}

#[test]
fn samples() {
    check(
        "from t tablesample System (10) repeatable (1 + 1)",
        "from t tablesample BERNOULLI ( \"tablesample\" ( 'system' , 10 , \"repeatable\" ( 1 + 1 ) ) )",
    );
}
