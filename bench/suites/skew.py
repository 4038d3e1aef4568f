"""Joins with skewed keys (Zipf), few matches and many, n to m, with itself, semi, anti and outer; conditions besides keys."""
from suites.suite import Column, Suite, Table, scattered

PEOPLE, ITEMS = 200_000, 50_000


def person(salt):
    return scattered(f"zipf(i, {salt}, {PEOPLE})", PEOPLE)


def item(salt):
    return scattered(f"zipf(i, {salt}, {ITEMS})", ITEMS)


PERSON = Table("person", "p_id", [
    Column("p_id", "bigint", "i"),
    Column("p_name", "text", "word(pick(i, 1, 8000)) || ' ' || word(pick(i, 2, 8000))"),
    Column("p_city", "int", "zipf(i, 3, 1000)"),
    Column("p_joined", "date", "DATE '2015-01-01' + pick(i, 4, 3650)::INT"),
    Column("p_boss", "bigint", f"CASE WHEN pick(i, 5, 10) > 0 THEN {person(6)} END", nullable=True),
], rows=PEOPLE)

ITEM = Table("item", "i_id", [
    Column("i_id", "int", "i"),
    Column("i_kind", "int", "zipf(i, 10, 200)"),
    Column("i_price", "numeric(10,2)", "(pick(i, 11, 100000) + 1) / 100.0"),
    Column("i_maker", "text", "'maker ' || word(zipf(i, 12, 500))"),
], rows=ITEMS)

# A fifth of the buyers are unknown to person.
SALE = Table("sale", "s_id", [
    Column("s_id", "bigint", "i"),
    Column("s_buyer", "bigint", f"CASE WHEN pick(i, 20, 5) > 0 THEN {person(21)} ELSE {PEOPLE} + pick(i, 22, 3000000) END"),
    Column("s_item", "int", item(23)),
    Column("s_at", "timestamp", "TIMESTAMP '2024-01-01' + to_seconds(pick(i, 24, 31536000))"),
    Column("s_count", "int", "zipf(i, 25, 30)"),
    Column("s_coupon", "int", "CASE WHEN pick(i, 26, 50) = 0 THEN pick(i, 27, 5000) END", nullable=True),
])

VISIT = Table("visit", "v_id", [
    Column("v_id", "bigint", "i"),
    Column("v_person", "bigint", person(30)),
    Column("v_item", "int", item(31)),
    Column("v_at", "timestamp", "TIMESTAMP '2024-01-01' + to_seconds(pick(i, 32, 31536000))"),
    Column("v_seconds", "int", "zipf(i, 33, 3000)"),
], share=0.5)

FOLLOW = Table("follow", "f_id", [
    Column("f_id", "bigint", "i"),
    Column("f_from", "bigint", f"pick(i, 40, {PEOPLE}) + 1"),
    Column("f_to", "bigint", person(41)),
    Column("f_since", "date", "DATE '2015-01-01' + pick(i, 42, 3650)::INT"),
], share=0.25)

COUPON = Table("coupon", "k_id", [
    Column("k_id", "int", "i"),
    Column("k_percent", "int", "pick(i, 50, 50) + 1"),
], rows=2500)

TAG = Table("tag", "t_item, t_tag", [
    Column("t_item", "int", "(i - 1) // 4 + 1"),
    Column("t_tag", "text", "word(zipf(i, 60, 300)) || (i - 1) % 4"),
], rows=4 * ITEMS)


def since(r, column, days=365, length=None):
    """A part of 2024, or of the ten years in which people join."""
    first = r.randrange(1, max(days - (length or 0), 2))
    start = "TIMESTAMP '2024-01-01 00:00:00'" if days == 365 else "DATE '2015-01-01'"
    step = lambda count: f"INTERVAL '{count} days'"
    low = f"{column} >= {start} + {step(first)}"
    return f"{low} AND {column} < {start} + {step(first + length)}" if length else low


def kinds(r, count):
    return f"i_kind IN ({r.numbers(5, 200, count)})"


SUITE = Suite("skew", (2_000_000, 200_000), [PERSON, ITEM, SALE, VISIT, FOLLOW, COUPON, TAG], {
    "to-dense": lambda r: f"SELECT i_kind, count(*), sum(s_count * i_price) FROM sale JOIN item ON s_item = i_id WHERE {since(r, 's_at')} GROUP BY i_kind ORDER BY i_kind",
    "to-sparse": lambda r: f"SELECT p_city, count(*), sum(s_count) FROM sale JOIN person ON s_buyer = p_id WHERE {since(r, 's_at')} GROUP BY p_city ORDER BY p_city",
    "few-match": lambda r: f"SELECT count(*), sum(s_count) FROM sale JOIN item ON s_item = i_id WHERE i_kind = {r.randint(20, 200)} AND i_price < {r.randint(50, 300)}",
    "many-match": lambda r: f"SELECT count(*), sum(s_count), max(i_price) FROM sale JOIN item ON s_item = i_id WHERE i_price > {r.randint(1, 50)}",
    "nullable-key": lambda r: f"SELECT k_percent, count(*), sum(s_count) FROM sale JOIN coupon ON s_coupon = k_id WHERE k_percent > {r.randint(1, 20)} GROUP BY 1 ORDER BY 1",
    "both-filtered": lambda r: f"SELECT i_maker, count(*) AS c FROM sale JOIN item ON s_item = i_id JOIN person ON s_buyer = p_id WHERE {kinds(r, 20)} AND p_city < {r.randint(3, 60)} GROUP BY 1 ORDER BY c DESC, 1 LIMIT 10",
    "by-name": lambda r: f"SELECT p_id, p_name, count(*) AS c, sum(s_count * i_price) FROM sale JOIN person ON s_buyer = p_id JOIN item ON s_item = i_id WHERE {since(r, 's_at')} GROUP BY p_id, p_name ORDER BY c DESC, p_id LIMIT 10",
    "n-to-m": lambda r: f"SELECT count(*), sum(s_count), sum(v_seconds) FROM sale JOIN visit ON s_item = v_item WHERE {since(r, 's_at', length=5)} AND {since(r, 'v_at', length=5)}",
    "n-to-m-groups": lambda r: f"SELECT t_tag, count(*) AS c, sum(s_count) FROM sale JOIN tag ON s_item = t_item WHERE {since(r, 's_at')} GROUP BY t_tag ORDER BY c DESC, t_tag LIMIT 20",
    "two-keys": lambda r: f"SELECT count(*), sum(s_count), max(v_seconds) FROM sale JOIN visit ON s_buyer = v_person AND s_item = v_item WHERE {since(r, 'v_at', length=20)}",
    "keys-and-range": lambda r: f"SELECT count(*), sum(v_seconds) FROM sale JOIN visit ON s_buyer = v_person AND s_at BETWEEN v_at AND v_at + INTERVAL '{r.randint(10, 50)} minutes' WHERE {since(r, 's_at', length=4)} AND {since(r, 'v_at', length=90)}",
    "friends-of-friends": lambda r: f"SELECT count(*), count(DISTINCT b.f_to) FROM follow a JOIN follow b ON a.f_to = b.f_from WHERE {since(r, 'a.f_since', 3650)}",
    "mutual": lambda r: f"SELECT count(*), min(a.f_id) FROM follow a JOIN follow b ON a.f_to = b.f_from AND a.f_from = b.f_to WHERE {since(r, 'a.f_since', 3650)}",
    "followed-together": lambda r: f"SELECT a.f_to AS x, b.f_to AS y, count(*) AS c FROM follow a JOIN follow b ON a.f_from = b.f_from AND a.f_to < b.f_to WHERE {since(r, 'a.f_since', 3650, 700)} GROUP BY 1, 2 ORDER BY c DESC, 1, 2 LIMIT 10",
    "bosses": lambda r: f"SELECT b.p_city, count(*), min(e.p_name) FROM person e JOIN person b ON e.p_boss = b.p_id WHERE {since(r, 'e.p_joined', 3650)} GROUP BY 1 ORDER BY 1",
    "three-levels": lambda r: f"SELECT count(*), max(c.p_joined) FROM person a JOIN person b ON a.p_boss = b.p_id JOIN person c ON b.p_boss = c.p_id WHERE a.p_joined > b.p_joined AND {since(r, 'b.p_joined', 3650)}",
    "exists": lambda r: f"SELECT p_city, count(*) FROM person WHERE EXISTS (SELECT 1 FROM sale WHERE s_buyer = p_id AND s_count > {r.randint(5, 20)}) GROUP BY p_city ORDER BY p_city",
    "exists-large": lambda r: f"SELECT count(*), sum(s_count) FROM sale WHERE EXISTS (SELECT 1 FROM visit WHERE v_person = s_buyer AND v_item = s_item AND v_seconds > {r.randint(1, 200)})",
    "exists-unequal": lambda r: f"SELECT count(*) FROM sale s WHERE s_count > {r.randint(8, 15)} AND {since(r, 's_at', length=6)} AND EXISTS (SELECT 1 FROM sale o WHERE o.s_buyer = s.s_buyer AND o.s_item <> s.s_item AND o.s_count < s.s_count)",
    "in": lambda r: f"SELECT count(*), sum(v_seconds) FROM visit WHERE v_item IN (SELECT i_id FROM item WHERE {kinds(r, 30)})",
    "not-exists": lambda r: f"SELECT p_city, count(*) FROM person WHERE NOT EXISTS (SELECT 1 FROM sale WHERE s_buyer = p_id AND {since(r, 's_at')}) GROUP BY p_city ORDER BY p_city",
    "not-exists-large": lambda r: f"SELECT count(*), sum(s_count) FROM sale WHERE NOT EXISTS (SELECT 1 FROM person WHERE p_id = s_buyer AND p_city < {r.randint(3, 400)})",
    "not-in": lambda r: f"SELECT count(*) FROM item WHERE i_id NOT IN (SELECT v_item FROM visit WHERE v_seconds < {r.randint(2, 100)})",
    # Hyper answers as if there were no nulls.
    "not-in-null": {
        "": lambda r: f"SELECT count(*) FROM person WHERE p_id NOT IN (SELECT p_boss FROM person WHERE p_city = {r.randint(1, 100)})",
        "hyper": None,
    },
    "left": lambda r: f"SELECT p_city, count(*), count(s_id), sum(s_count) FROM person LEFT JOIN sale ON s_buyer = p_id AND {since(r, 's_at')} GROUP BY p_city ORDER BY p_city",
    "left-counted": lambda r: f"SELECT c, count(*) FROM (SELECT p_id, count(f_id) AS c FROM person LEFT JOIN follow ON f_to = p_id AND {since(r, 'f_since', 3650)} GROUP BY p_id) AS n GROUP BY c ORDER BY c",
    "left-without": lambda r: f"SELECT count(*), sum(s_count) FROM sale LEFT JOIN person ON s_buyer = p_id WHERE p_id IS NULL AND {since(r, 's_at')}",
    "full": lambda r: f"SELECT count(*), count(a.p), count(b.p) FROM (SELECT s_buyer AS p FROM sale WHERE {since(r, 's_at')} GROUP BY 1) AS a FULL JOIN (SELECT v_person AS p FROM visit WHERE v_seconds > {r.randint(1, 500)} GROUP BY 1) AS b ON a.p = b.p",
    "above-average": lambda r: f"SELECT count(*), sum(s_count) FROM sale s WHERE s_item % 8 = {r.randrange(8)} AND s_count > (SELECT avg(o.s_count) FROM sale o WHERE o.s_item = s.s_item)",
    "latest": lambda r: f"SELECT count(*), sum(v_seconds) FROM visit v WHERE v_person % 8 = {r.randrange(8)} AND v_at = (SELECT max(o.v_at) FROM visit o WHERE o.v_person = v.v_person)",
    "two-groups": lambda r: f"SELECT count(*), sum(s.c * v.c) FROM (SELECT s_item, count(*) AS c FROM sale WHERE {since(r, 's_at')} GROUP BY 1) AS s JOIN (SELECT v_item, count(*) AS c FROM visit GROUP BY 1) AS v ON s_item = v_item",
    "or-of-keys": lambda r: f"SELECT count(*), sum(s_count) FROM sale JOIN item ON s_item = i_id JOIN person ON s_buyer = p_id WHERE i_kind = {r.randint(1, 20)} AND p_city < 50 OR i_kind = {r.randint(21, 60)} AND p_city > {r.randint(50, 200)}",
    "five-tables": lambda r: f"SELECT i_kind, count(*) AS c, sum(v_seconds) FROM follow JOIN person ON f_to = p_id JOIN visit ON v_person = f_from JOIN item ON v_item = i_id JOIN coupon ON k_id = i_kind WHERE p_city = {r.randint(2, 300)} GROUP BY i_kind ORDER BY c DESC, i_kind LIMIT 10",
    "distinct-partners": lambda r: f"SELECT i_kind, count(DISTINCT s_buyer) FROM sale JOIN item ON s_item = i_id WHERE {since(r, 's_at')} GROUP BY i_kind ORDER BY i_kind",
    "both-ways": lambda r: f"SELECT f_from FROM follow WHERE {since(r, 'f_since', 3650, 600)} INTERSECT SELECT f_to FROM follow WHERE f_from < {r.randint(5000, 9000)}",
    "except": lambda r: f"SELECT count(*) FROM (SELECT v_person FROM visit WHERE {since(r, 'v_at')} EXCEPT SELECT s_buyer FROM sale WHERE s_count > {r.randint(1, 9)}) AS e",
    "shared": lambda r: f"WITH spent AS (SELECT s_buyer, sum(s_count) AS n FROM sale WHERE {since(r, 's_at')} GROUP BY 1) SELECT count(*), sum(n) FROM spent WHERE n > (SELECT 20 * avg(n) FROM spent)",
    "price-bands": lambda r: f"SELECT b.low, count(*) FROM item JOIN (VALUES (0, {r.randint(90, 110)}), (200, 400), (500, 900)) AS b(low, high) ON i_price >= b.low AND i_price < b.high GROUP BY 1 ORDER BY 1",
})
