use super::super::utility::parse_query_text;
use super::as_written;

/// What a query is after it was read and written.
fn again(sql: &str) -> String {
    as_written(&parse_query_text(sql).unwrap().to_string())
}

#[test]
fn marked_forms_are_written_as_postgresql_reads_them() {
    for (sql, expected) in [
        ("select * from f() as (a int)", "SELECT * FROM f() AS (a INT)"),
        ("select * from rows from (f(1), g(2)) as r", "SELECT * FROM ROWS FROM(f(1), g(2)) AS r"),
        ("select * from a join b using (x) as j", "SELECT * FROM a JOIN b USING(x) AS j"),
        ("select f(variadic x)", "SELECT f(VARIADIC x)"),
        ("select a between symmetric 3 and 1", "SELECT a BETWEEN SYMMETRIC 3 AND 1"),
        ("select (c).*, '\"grouping sets\"('", "SELECT (c).*, '\"grouping sets\"('"),
        ("select 1 from t group by grouping sets ((a), ())", "SELECT 1 FROM t GROUP BY GROUPING SETS ((a), ())"),
        (
            "select sum(a) over (order by a rows between 1 preceding and current row exclude ties) from t",
            "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM t",
        ),
        (
            "select * from t tablesample system (5) repeatable (1)",
            "SELECT * FROM t TABLESAMPLE system (5) REPEATABLE (1)",
        ),
        (
            "with recursive r (n) as (select 1 union all select n from r) search depth first by n set o select * from r",
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n FROM r) search depth first by n set o SELECT * FROM r",
        ),
    ] {
        assert_eq!(again(sql), expected);
        assert_eq!(again(expected), expected);
    }
}
