"""Arrays and JSON: elements as rows, conditions on them, fields as numbers and texts, what is gathered into arrays.

DuckDB says some of it in other words.
"""
from suites.suite import Column, Suite, Table

KINDS = ["view", "click", "buy", "search", "login", "share"]

LIST = "list_transform(range(pick(i, {salt}, {most})), lambda n: {each})"

ITEMS = """to_json(list_transform(range(pick(i, 20, 4)),
    lambda n: {'sku': word(zipf(i * 10 + n, 21, 3000)), 'price': (pick(i * 10 + n, 22, 10000) + 1) / 100.0, 'n': pick(i * 10 + n, 23, 5) + 1}))"""
DOC = f"""json_object('lang', ['en', 'de', 'fr', 'es', 'pt'][zipf(i, 11, 6)], 'device', json_object('os', ['mac', 'win', 'ios', 'droid'][zipf(i, 12, 5)],
    'version', pick(i, 13, 20), 'touch', pick(i, 14, 2) = 0), 'score', pick(i, 15, 100000) / 100.0, 'page', '/' || word(zipf(i, 16, 4000)),
    'ref', CASE WHEN pick(i, 17, 3) = 0 THEN word(pick(i, 18, 500)) END, 'items', {ITEMS})"""

EVENT = Table("event", "id", [
    Column("id", "bigint", "i"),
    Column("seen", "timestamp", "TIMESTAMP '2024-01-01' + to_seconds(i * 5)"),
    Column("user_id", "int", "zipf(i, 1, 100000)"),
    Column("kind", "text", f"{KINDS}[zipf(i, 2, 7)]"),
    Column("tags", "text[]", LIST.format(salt=3, most=6, each="word(zipf(i * 10 + n, 4, 500))")),
    Column("scores", "int[]", LIST.format(salt=5, most=9, each="pick(i * 10 + n, 6, 1000)")),
    Column("doc", "jsonb", DOC),
])


def kind(r):
    return f"kind <> '{r.choice(KINDS)}'"


def tag(r):
    return r.word(r.randint(5, 60))


def said(own, duckdb):
    """A query that DuckDB words differently."""
    return {"": own, "duckdb": duckdb}


def items(r, sql, own):
    source = "jsonb_array_elements(doc->'items') AS e(item)" if own else "unnest((doc->'items')::JSON[]) AS e(item)"
    return f"{sql.split(' WHERE ')[0]} FROM event, {source} WHERE {sql.split(' WHERE ')[1]}"


SUITE = Suite("nested", (1_000_000, 100_000), [EVENT], {
    "lengths": lambda r: f"SELECT array_length(scores, 1) AS n, count(*), sum(id) FROM event WHERE {kind(r)} AND scores[1] > {r.randint(0, 300)} GROUP BY 1 ORDER BY 1",
    "element": lambda r: f"SELECT sum(scores[{r.randint(1, 3)}]), max(scores[1]), min(tags[1]) FROM event WHERE {kind(r)}",
    "group-by-element": lambda r: f"SELECT tags[1], count(*) AS c FROM event WHERE {kind(r)} AND tags[1] <> '' GROUP BY 1 ORDER BY c DESC, 1 LIMIT 10",
    "group-by-array": lambda r: f"SELECT tags, count(*) AS c FROM event WHERE {kind(r)} AND tags[2] IS NOT NULL GROUP BY 1 ORDER BY c DESC, 1 LIMIT 10",
    "any": lambda r: f"SELECT count(*), sum(id) FROM event WHERE '{tag(r)}' = ANY(tags)",
    "any-greater": lambda r: f"SELECT kind, count(*) FROM event WHERE {r.randint(800, 990)} < ANY(scores) GROUP BY kind ORDER BY kind",
    "contains": lambda r: f"SELECT kind, count(*) FROM event WHERE tags @> ARRAY['{tag(r)}'] GROUP BY kind ORDER BY kind",
    "overlaps": lambda r: f"SELECT kind, count(*) FROM event WHERE tags && ARRAY['{tag(r)}', '{tag(r)}'] GROUP BY kind ORDER BY kind",
    "unnest-count": lambda r: f"SELECT count(*), sum(s) FROM event, unnest(scores) AS u(s) WHERE {kind(r)}",
    "unnest-tags": lambda r: f"SELECT t, count(*) AS c FROM event, unnest(tags) AS u(t) WHERE {kind(r)} GROUP BY t ORDER BY c DESC, t LIMIT 10",
    "unnest-filtered": lambda r: f"SELECT t, count(*) AS c, count(DISTINCT user_id) FROM event, unnest(tags) AS u(t) WHERE t LIKE '{r.word()[:2]}%' GROUP BY t ORDER BY c DESC, t LIMIT 10",
    "unnest-in-list": lambda r: f"SELECT s / 100 AS band, count(*) FROM (SELECT unnest(scores) AS s FROM event WHERE {kind(r)}) AS u GROUP BY 1 ORDER BY 1",
    "gathered": lambda r: f"SELECT user_id, array_agg(kind ORDER BY id) FROM event WHERE user_id BETWEEN {(first := r.randint(20, 2000))} AND {first + 9} GROUP BY user_id ORDER BY user_id",
    "gathered-distinct": lambda r: f"SELECT kind, array_agg(DISTINCT tags[1] ORDER BY tags[1]) FROM event WHERE tags[1] LIKE '{r.word()[:2]}%' GROUP BY kind ORDER BY kind",
    "field": lambda r: f"SELECT doc->>'lang' AS k, count(*) FROM event WHERE {kind(r)} GROUP BY 1 ORDER BY 1",
    "field-equal": lambda r: f"SELECT count(*), sum(id) FROM event WHERE (doc->>'page') = '/{tag(r)}'",
    "field-missing": lambda r: f"SELECT kind, count(*) FROM event WHERE (doc->>'ref') IS NULL AND {kind(r)} GROUP BY kind ORDER BY kind",
    "field-top": lambda r: f"SELECT doc->>'page' AS k, count(*) AS c FROM event WHERE {kind(r)} GROUP BY 1 ORDER BY c DESC, 1 LIMIT 10",
    "deep-field": lambda r: f"SELECT doc->'device'->>'os' AS k, count(*), max((doc->'device'->>'version')::int) FROM event WHERE {kind(r)} GROUP BY 1 ORDER BY 1",
    "number": lambda r: f"SELECT kind, sum((doc->>'score')::numeric(10,2)), avg((doc->>'score')::double precision) FROM event WHERE ((doc->'device'->>'version')::int) > {r.randint(1, 12)} GROUP BY kind ORDER BY kind",
    "boolean": lambda r: f"SELECT (doc->'device'->>'touch')::boolean AS k, count(*) FROM event WHERE {kind(r)} GROUP BY 1 ORDER BY 1",
    "like": lambda r: f"SELECT count(*) FROM event WHERE (doc->>'page') LIKE '%{r.word()[:4]}%'",
    "two-fields": lambda r: f"SELECT doc->>'lang' AS l, doc->'device'->>'os' AS o, count(*), min(doc->>'page') FROM event WHERE {kind(r)} GROUP BY 1, 2 ORDER BY 1, 2",
    "item-count": said(
        lambda r: f"SELECT jsonb_array_length(doc->'items') AS n, count(*) FROM event WHERE {kind(r)} GROUP BY 1 ORDER BY 1",
        lambda r: f"SELECT json_array_length(doc->'items') AS n, count(*) FROM event WHERE {kind(r)} GROUP BY 1 ORDER BY 1",
    ),
    "first-item": lambda r: f"SELECT doc->'items'->0->>'sku' AS k, count(*) AS c FROM event WHERE (doc->'items'->0->>'sku') <> '{tag(r)}' GROUP BY 1 ORDER BY c DESC, 1 LIMIT 10",
    "path": said(
        lambda r: f"SELECT doc #>> '{{items,0,sku}}' AS k, count(*) AS c FROM event WHERE doc #>> '{{device,os}}' <> '{r.choice(['mac', 'win'])}' GROUP BY 1 ORDER BY c DESC, 1 LIMIT 10",
        lambda r: f"SELECT doc ->> '$.items[0].sku' AS k, count(*) AS c FROM event WHERE (doc ->> '$.device.os') <> '{r.choice(['mac', 'win'])}' GROUP BY 1 ORDER BY c DESC, 1 LIMIT 10",
    ),
    "contained": said(
        lambda r: f"SELECT kind, count(*) FROM event WHERE doc @> '{{\"lang\": \"{r.choice(['en', 'de', 'fr'])}\", \"device\": {{\"touch\": true}}}}' GROUP BY kind ORDER BY kind",
        lambda r: f"SELECT kind, count(*) FROM event WHERE json_contains(doc, '{{\"lang\": \"{r.choice(['en', 'de', 'fr'])}\", \"device\": {{\"touch\": true}}}}') GROUP BY kind ORDER BY kind",
    ),
    "has-key": said(
        lambda r: f"SELECT count(*) FROM event WHERE doc ? 'ref' AND {kind(r)}",
        lambda r: f"SELECT count(*) FROM event WHERE json_exists(doc, '$.ref') AND {kind(r)}",
    ),
    "items": said(
        lambda r: items(r, f"SELECT count(*), sum((item->>'n')::int) WHERE {kind(r)}", True),
        lambda r: items(r, f"SELECT count(*), sum((item->>'n')::int) WHERE {kind(r)}", False),
    ),
    "items-top": said(
        lambda r: items(r, f"SELECT item->>'sku' AS k, sum((item->>'n')::int) AS c WHERE {kind(r)} GROUP BY 1 ORDER BY c DESC, 1 LIMIT 10", True),
        lambda r: items(r, f"SELECT item->>'sku' AS k, sum((item->>'n')::int) AS c WHERE {kind(r)} GROUP BY 1 ORDER BY c DESC, 1 LIMIT 10", False),
    ),
    "items-revenue": said(
        lambda r: items(r, f"SELECT kind, sum((item->>'n')::int * (item->>'price')::numeric(10,2)) WHERE user_id > {r.randint(1, 100)} GROUP BY 1 ORDER BY 1", True),
        lambda r: items(r, f"SELECT kind, sum((item->>'n')::int * (item->>'price')::numeric(10,2)) WHERE user_id > {r.randint(1, 100)} GROUP BY 1 ORDER BY 1", False),
    ),
    "built": said(
        lambda r: f"SELECT count(DISTINCT jsonb_build_object('k', kind, 'l', doc->>'lang')::text) FROM event WHERE user_id > {r.randint(1, 100)}",
        lambda r: f"SELECT count(DISTINCT json_object('k', kind, 'l', doc->>'lang')::text) FROM event WHERE user_id > {r.randint(1, 100)}",
    ),
    "whole": lambda r: f"SELECT id, tags, scores, doc->>'page' FROM event WHERE user_id > {r.randint(1, 100)} ORDER BY scores[1] DESC NULLS LAST, id LIMIT 20",
})
