//! Texts with parameters in the place of literals, and the bounds of the cache.

use super::text::{Literal, Literals, parametrize, statement_of};
use super::{Advice, ENTRIES_MAX, PlanCache, PlanKey};
use std::sync::Arc;

/// The text and the literals; `None` if it is left alone.
fn taken(sql: &str) -> Option<(String, Vec<String>)> {
    let (mut key, mut literals) = (Vec::new(), Literals::new());
    let shown = |literal: &Literal<'_>| match literal {
        Literal::Int4(value) => value.to_string(),
        Literal::Int8(value) => format!("{value}L"),
        Literal::Decimal(text) => format!("{text}N"),
        Literal::Text(text) => format!("'{text}'"),
    };
    parametrize(sql, &mut key, &mut literals)
        .then(|| (statement_of(&key).unwrap().to_string(), literals.iter().map(shown).collect()))
}

#[test]
fn literals_become_parameters_where_parameters_may_stand() {
    let cases = [
        ("SELECT a FROM t WHERE id = 5;", "SELECT a FROM t WHERE id = $1", vec!["5"]),
        (
            " select  a\n from t where id=2147483649 and b='x''y' ",
            "select a from t where id=$1 and b=$2",
            vec!["2147483649L", "'x''y'"],
        ),
        ("select a1 from t2 where t2.c3 > -7 limit 1", "select a1 from t2 where t2.c3 > -$1 limit $2", vec!["7", "1"]),
        ("select 1.5, 2e3, \"a 1\", 2147483648 from t", "select $1, 2e3, \"a 1\", 2147483648 from t", vec!["1.5N"]),
        ("select a from t where b > 1.50 and c < 1.", "select a from t where b > $1 and c < 1.", vec!["1.50N"]),
        (
            "INSERT INTO t (a, b) VALUES (1, 'x'), (-2.5, null)",
            "INSERT INTO t (a, b) VALUES ($1, $2), (-$3, null)",
            vec!["1", "'x'", "2.5N"],
        ),
        ("update t set a = a - 3 where id = 4", "update t set a = a - $1 where id = $2", vec!["3", "4"]),
        ("delete from t where id = 4;", "delete from t where id = $1", vec!["4"]),
        ("select a + 1 from t where b in (1, 'q')", "select a + $1 from t where b in ($2, $3)", vec!["1", "1", "'q'"]),
        (
            "select a from t where s = 'é' and q like 'x%'",
            "select a from t where s = $1 and q like $2",
            vec!["'é'", "'x%'"],
        ),
        ("select 99999999999999999999", "select 99999999999999999999", vec![]),
        ("select a, 7 from t where b = 5 order by 1", "select a, $1 from t where b = $2 order by 1", vec!["7", "5"]),
        (
            "select a from t where b = 5 ORDER BY a + 1, 2 desc, (c, 3) LIMIT 10 offset 4",
            "select a from t where b = $1 ORDER BY a + 1, 2 desc, (c, 3) LIMIT $2 offset $3",
            vec!["5", "10", "4"],
        ),
        (
            "select a from t where b = 5 order by c, 2 for update of t skip locked",
            "select a from t where b = $1 order by c, 2 for update of t skip locked",
            vec!["5"],
        ),
        (
            "select a from (select a from t order by 1 limit 9) t where b = 5 and reordered > 3",
            "select a from (select a from t order by 1 limit $1) t where b = $2 and reordered > $3",
            vec!["9", "5", "3"],
        ),
        (
            "select a from t where b = 5 order by substring(a from 1 for 2), 1 limit 3",
            "select a from t where b = $1 order by substring(a from 1 for 2), 1 limit $2",
            vec!["5", "3"],
        ),
        (
            "select a from t where b = 5 order by \"t\".limit, 1, \"t\" . offset, 2",
            "select a from t where b = $1 order by \"t\".limit, 1, \"t\" . offset, 2",
            vec!["5"],
        ),
        (
            "select a from t where b in (select c from u order by 1, 2 limit 4) and d = 5 order by (select 1 limit 2), 6",
            "select a from t where b in (select c from u order by 1, 2 limit $1) and d = $2 order by (select 1 limit 2), 6",
            vec!["4", "5"],
        ),
        (
            "select a from t where array_agg(b order by c) = 7 and d = 5",
            "select a from t where array_agg(b order by c) = $1 and d = $2",
            vec!["7", "5"],
        ),
        (
            "select substring(a from 2 for 3) from t where b = 5",
            "select substring(a from 2 for 3) from t where b = $1",
            vec!["5"],
        ),
    ];
    for (sql, text, literals) in cases {
        let literals: Vec<String> = literals.into_iter().map(String::from).collect();
        assert_eq!(taken(sql), Some((text.to_string(), literals)), "{sql}");
    }
}

#[test]
fn unusual_texts_are_left_alone() {
    let left = [
        "",
        "begin",
        "select $1",
        "select 1; select 2",
        "select 1 -- one",
        "select /* x */ 1",
        "select E'a'",
        "select 'a\\b'",
        "select $$a$$",
        "select U&'a'",
        "select 'open",
        "select \"open",
        "select 'a' 'b'",
        "values (1)",
        "select 'a'\n'b'",
        "select a from t order by coalesce(b, 'x')",
        "select substring(a from 'x' for '#') from t",
        "select a from t group by 1",
        "select '1'::interval hour",
        "select a from t where d > date 'today'",
        "insert into t select a into u",
        "merge into t using u on true when matched then delete",
    ];
    for sql in left {
        assert_eq!(taken(sql), None, "{sql}");
    }
}

/// What different literals must not share has different keys.
#[test]
fn kinds_of_literals_are_part_of_the_key() {
    let key = |sql: &str| {
        let (mut key, mut literals) = (Vec::new(), Literals::new());
        assert!(parametrize(sql, &mut key, &mut literals));
        key
    };
    let first = key("select a from t where id = 1");
    assert_eq!(first, key("select  a from t where id = 2"));
    assert_ne!(first, key("select a from t where id = 3000000000"));
    assert_ne!(first, key("select a from t where id = '1'"));
    assert_ne!(first, key("select A from t where id = 1"));
}

#[test]
fn the_cache_is_bounded_and_keeps_what_is_used() {
    let cache = PlanCache::default();
    let key = |n: usize| PlanKey { text: n.to_string().into_bytes().into(), around: Arc::from("") };
    assert!(matches!(cache.advise(&key(0), 1), Advice::Leave));
    assert!(matches!(cache.advise(&key(0), 1), Advice::Learn));
    cache.tell(key(0), 1, None);
    for n in 1..3 * ENTRIES_MAX {
        assert!(matches!(cache.advise(&key(n), 1), Advice::Leave), "{n} comes for the first time");
        // Comes again and again.
        assert!(matches!(cache.advise(&key(0), 1), Advice::Leave));
        assert!(matches!(cache.advise(&key(0), 2), Advice::Learn), "another catalog");
    }
    assert!(cache.entries.lock().len() <= ENTRIES_MAX);
}
