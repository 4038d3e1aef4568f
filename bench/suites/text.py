"""Groups, joins and orders by texts: long keys with prefixes in common, many distinct ones, parts that are computed."""
from suites.suite import Column, Suite, Table

ROWS, QUICK = 2_000_000, 200_000

PAGE = Table("page", "id", [
    Column("id", "bigint", "i"),
    Column("host", "text", "'www.' || word(zipf(i, 1, 2000)) || '.' || ['com', 'org', 'net', 'example'][pick(i, 2, 4) + 1]"),
    Column("path", "text", "'/' || word(pick(i, 3, 40)) || '/' || word(pick(i, 4, 400)) || '/' || word(zipf(i, 5, 8000)) || '-' || pick(i, 6, 500) || '.html'"),
    Column("url", "text", "'https://' || host || path || CASE WHEN pick(i, 7, 3) = 0 THEN '?session=' || md5((i // 3)::TEXT) || '&page=' || pick(i, 8, 9) ELSE '' END"),
    Column("token", "text", "md5(pick(i, 9, 1000000)::TEXT) || md5(pick(i, 9, 1000000)::TEXT || 'x')"),
    Column("mail", "text", "word(pick(i, 10, 8000)) || '.' || word(zipf(i, 11, 8000)) || '@' || word(zipf(i, 12, 500)) || '.example'"),
    Column("category", "text", "upper(word(zipf(i, 13, 60)))"),
    Column("note", "text", "CASE WHEN pick(i, 14, 20) = 0 THEN 'See ' || word(pick(i, 15, 8000)) || ' and ' || word(zipf(i, 16, 8000)) || ', as ' || word(pick(i, 17, 8000)) || ' says.' ELSE '' END"),
    Column("language", "text", "['en', 'de', 'fr', 'es', 'pt', 'ja', 'zh', 'it'][zipf(i, 18, 9)]"),
    Column("size", "int", "pick(i, 19, 100000)"),
])

TERM = Table("term", "word", [
    Column("word", "text", "word(i - 1)"),
    Column("kind", "text", "['noun', 'verb', 'name', 'other'][pick(i, 30, 4) + 1]"),
], rows=8000)

# A tenth of the tokens that pages have, and as many that no page has.
KNOWN = Table("known", "token", [
    Column("token", "text", "md5((i * 5)::TEXT) || md5((i * 5)::TEXT || 'x')"),
    Column("owner", "text", "word(pick(i, 31, 8000))"),
], rows=200_000)


def top(expr, r, measure="count(*)", condition=""):
    return f"""SELECT {expr} AS k, {measure} AS c FROM page {condition}
        GROUP BY 1 ORDER BY c DESC, k LIMIT {r.randint(8, 12)} OFFSET {r.randint(0, 20)}"""


def of_language(r):
    return f"WHERE language <> '{r.choice(['en', 'de', 'fr', 'es', 'pt'])}'"


SUITE = Suite("text", (ROWS, QUICK), [PAGE, TERM, KNOWN], {
    "few-groups": lambda r: f"SELECT category, count(*), sum(size) FROM page WHERE size > {r.randint(0, 5000)} GROUP BY category ORDER BY category",
    "two-keys": lambda r: f"SELECT category, language, count(*), avg(size) FROM page WHERE size > {r.randint(0, 5000)} GROUP BY 1, 2 ORDER BY 1, 2",
    "hosts": lambda r: top("host", r, condition=of_language(r)),
    "paths": lambda r: top("path", r, condition=of_language(r)),
    "urls": lambda r: top("url", r, condition=of_language(r)),
    "tokens": lambda r: top("token", r, condition=of_language(r)),
    "mails": lambda r: top("mail", r, "sum(size)", of_language(r)),
    "host-and-mail": lambda r: f"SELECT host, mail, count(*) AS c FROM page {of_language(r)} GROUP BY 1, 2 ORDER BY c DESC, 1, 2 LIMIT 10",
    "token-and-number": lambda r: f"SELECT token, size % {r.randint(3, 9)} AS s, count(*) AS c FROM page GROUP BY 1, 2 ORDER BY c DESC, 1, 2 LIMIT 10",
    "concatenated": lambda r: top("host || path", r, condition=of_language(r)),
    "distinct-tokens": lambda r: f"SELECT count(DISTINCT token) FROM page {of_language(r)}",
    "distinct-of-groups": lambda r: f"SELECT category, count(DISTINCT mail) FROM page {of_language(r)} GROUP BY category ORDER BY category",
    "distinct-beside-count": lambda r: f"SELECT host, count(*) AS c, count(DISTINCT mail) FROM page {of_language(r)} GROUP BY host ORDER BY c DESC, host LIMIT 10",
    "distinct-rows": lambda r: f"SELECT count(*) FROM (SELECT DISTINCT host, language, category FROM page {of_language(r)}) AS d",
    "prefix": lambda r: top(f"left(path, {r.randint(6, 14)})", r),
    "domain-of-mail": lambda r: top("split_part(mail, '@', 2)", r, "sum(size)", of_language(r)),
    "last-part": lambda r: top("reverse(split_part(reverse(path), '/', 1))", r, condition=of_language(r)),
    "lower": lambda r: top("lower(category)", r, "avg(length(url))", of_language(r)),
    "replace": lambda r: top(f"replace(host, 'www.', '{r.word()}.')", r),
    "case": lambda r: top(f"CASE WHEN url LIKE '%{r.word()[:4]}%' THEN 'hit' WHEN note = '' THEN 'none' ELSE language END", r),
    "lengths": lambda r: top("length(url)", r, "count(*)", of_language(r)),
    "between": lambda r: "SELECT count(*), min(path), max(path) FROM page WHERE path BETWEEN '/{}' AND '/{}'".format(*sorted([r.word(), r.word()])),
    "between-nothing": lambda r: f"SELECT count(*), min(path), max(path) FROM page WHERE path BETWEEN '/{r.word()}' AND '/a'",
    "like-prefix": lambda r: f"SELECT count(*), sum(size) FROM page WHERE path LIKE '/{r.word(40)}/%'",
    "like-suffix": lambda r: f"SELECT count(*), max(url) FROM page WHERE path LIKE '%{r.randint(10, 99)}.html'",
    "like-middle": lambda r: f"SELECT count(*), min(mail) FROM page WHERE url LIKE '%{r.word()}%'",
    "like-two": lambda r: f"SELECT count(*) FROM page WHERE url LIKE '%{r.word()[:4]}%/%{r.word()[:3]}%-%'",
    "not-like": lambda r: f"SELECT language, count(*) FROM page WHERE url NOT LIKE '%session=%{r.randint(0, 9)}&%' GROUP BY language ORDER BY language",
    "ilike": lambda r: f"SELECT count(*) FROM page WHERE note ILIKE '%{r.word().upper()[:4]}%'",
    "regexp": lambda r: f"SELECT count(*) FROM page WHERE mail ~ '^{r.word()[:2]}[a-m]+\\..*@{r.word()[:2]}'",
    "in-list": lambda r: "SELECT mail, size FROM page WHERE category IN ({}) AND host LIKE 'www.{}%' ORDER BY size DESC, id LIMIT 20".format(
        ", ".join(f"'{r.word(60).upper()}'" for _ in range(5)), r.word()[:2]
    ),
    "sorted": lambda r: f"SELECT url, id FROM page {of_language(r)} ORDER BY url DESC, id LIMIT 20",
    "sorted-by-part": lambda r: f"SELECT id, mail FROM page {of_language(r)} ORDER BY split_part(mail, '.', 2), mail, id LIMIT 20",
    "joined": lambda r: f"SELECT kind, count(*), sum(size) FROM page JOIN term ON word = lower(category) {of_language(r)} GROUP BY kind ORDER BY kind",
    "joined-long": lambda r: f"SELECT count(*), count(DISTINCT owner), max(owner) FROM page JOIN known USING (token) {of_language(r)}",
    "not-known": lambda r: f"SELECT count(*), min(token) FROM page {of_language(r)} AND NOT EXISTS (SELECT 1 FROM known WHERE known.token = page.token)",
    "having": lambda r: f"SELECT count(*), max(c) FROM (SELECT mail, count(*) AS c FROM page GROUP BY mail HAVING count(*) > {r.randint(1, 4)}) AS m",
    "minima": lambda r: f"SELECT category, min(url), max(url), min(token), max(mail) FROM page {of_language(r)} GROUP BY category ORDER BY category",
    "gathered": lambda r: f"SELECT language, string_agg(mail, ',' ORDER BY mail, id) FROM page WHERE id % 20000 = {r.randint(0, 19999)} GROUP BY language ORDER BY language",
})
