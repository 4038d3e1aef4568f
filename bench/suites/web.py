"""A wide table of page views, about a hundred columns, and the questions that users of web analytics ask of it.

Views come in order of time. Sites, users, addresses and search phrases are skewed; most texts are mostly empty, most
flags mostly 0.
"""
from suites.suite import Column, Suite, Table, scattered

SITES, USERS, PHRASES = 2000, 150_000, 60_000
DAYS = 30
SECONDS = DAYS * 86400


def flags(names, salt, one_in):
    return [Column(name, "smallint", f"(pick(i, {salt + at}, {one_in}) = 0)::INT") for at, name in enumerate(names)]


def rare_texts(names, salt, one_in, count):
    text = lambda salt: f"CASE WHEN pick(i, {salt}, {one_in}) = 0 THEN word(zipf(i, {salt + 1}, {count})) ELSE '' END"
    return [Column(name, "text", text(salt + 2 * at)) for at, name in enumerate(names)]


def amounts(names, salt, most):
    return [Column(name, "int", f"zipf(i, {salt + at}, {most}) - 1") for at, name in enumerate(names)]


WHO = [
    Column("view_id", "bigint", "i"),
    Column("seen", "timestamp", f"TIMESTAMP '2024-07-01' + to_seconds(i * {SECONDS - 60} // $rows + pick(i, 1, 60))"),
    Column("day", "date", "seen::DATE"),
    Column("site", "int", scattered(f"zipf(i, 2, {SITES})", SITES)),
    Column("user_id", "bigint", f"hash({scattered(f'zipf(i, 3, {USERS})', USERS)}) >> 2"),
    Column("session", "bigint", "hash(user_id, day) >> 2"),
    Column("address", "int", "hash(user_id, 4) % 2000000000"),
    Column("region", "int", "pick(user_id, 5, 40) * pick(user_id, 6, 100)"),
    Column("country", "text", "upper(left(word(zipf(user_id, 7, 150)), 2))"),
    Column("language", "text", "['en', 'de', 'fr', 'es', 'pt', 'ru', 'ja', 'zh', 'it', 'nl'][zipf(user_id, 8, 11)]"),
]

WHERE = [
    Column("url", "text", "'https://' || word(site) || '.example/' || word(zipf(i, 10, 400)) || '/' || word(zipf(i, 11, 8000)) || CASE WHEN pick(i, 12, 4) = 0 THEN '?id=' || pick(i, 13, 100000) ELSE '' END"),
    Column("url_hash", "bigint", "hash(url) >> 1"),
    Column("title", "text", "CASE WHEN pick(i, 14, 12) = 0 THEN '' ELSE word(site) || ' - ' || word(zipf(i, 15, 8000)) || ' ' || word(zipf(i, 16, 8000)) || CASE WHEN pick(i, 17, 40) = 0 THEN ' | Shop' ELSE '' END END"),
    Column("referrer", "text", "CASE pick(i, 18, 10) WHEN 0 THEN 'https://www.search.example/q=' || word(zipf(i, 19, 4000)) WHEN 1 THEN 'http://' || word(zipf(i, 20, 3000)) || '.' || ['com', 'org', 'net'][pick(i, 21, 3) + 1] || '/' || word(zipf(i, 22, 900)) WHEN 2 THEN 'https://www.' || word(site) || '.example/' WHEN 3 THEN 'https://' || word(zipf(i, 23, 100)) || '.example/' || pick(i, 24, 9999) ELSE '' END"),
    Column("referrer_hash", "bigint", "CASE WHEN referrer = '' THEN 0 ELSE hash(referrer) >> 1 END"),
    Column("phrase", "text", f"CASE WHEN pick(i, 25, 7) = 0 THEN word(zipf(i, 26, {PHRASES}) % 7919) || CASE WHEN pick(i, 27, 3) = 0 THEN ' ' || word(zipf(i, 28, 3000)) ELSE '' END ELSE '' END"),
    Column("engine", "smallint", "CASE WHEN phrase = '' THEN 0 ELSE zipf(i, 29, 40) END"),
    Column("campaign", "smallint", "CASE WHEN pick(i, 30, 9) = 0 THEN zipf(i, 31, 500) ELSE 0 END"),
]

WITH = [
    Column("browser", "smallint", "zipf(user_id, 32, 60)"),
    Column("browser_version", "text", "(pick(user_id, 33, 40) + 80) || '.' || pick(user_id, 34, 10)"),
    Column("system", "smallint", "zipf(user_id, 35, 30)"),
    Column("system_version", "text", "(pick(user_id, 36, 15) + 1)::TEXT"),
    Column("phone", "smallint", "CASE WHEN pick(user_id, 37, 8) = 0 THEN zipf(user_id, 38, 120) ELSE 0 END"),
    Column("phone_model", "text", "CASE WHEN phone > 0 THEN upper(word(phone + 40)) || ' ' || pick(user_id, 39, 20) ELSE '' END"),
    Column("screen_width", "smallint", "[1366, 1920, 1440, 1536, 360, 414, 2560, 1280][zipf(user_id, 40, 9)]"),
    Column("screen_height", "smallint", "[768, 1080, 900, 864, 780, 896, 1440, 720][zipf(user_id, 40, 9)]"),
    Column("window_width", "smallint", "screen_width - pick(i, 41, 80)"),
    Column("window_height", "smallint", "screen_height - pick(i, 42, 200)"),
    Column("depth", "smallint", "[24, 32, 30, 16][zipf(user_id, 43, 5)]"),
    Column("zone", "smallint", "pick(user_id, 44, 25) - 12"),
    Column("kind", "smallint", "zipf(i, 45, 12)"),
    Column("price", "numeric(12,2)", "CASE WHEN pick(i, 46, 30) = 0 THEN (pick(i, 47, 50000) + 99) / 100.0 END", nullable=True),
    Column("ratio", "double precision", "unit(i, 48)"),
    Column("left_at", "timestamp", "CASE WHEN pick(i, 49, 3) = 0 THEN seen + to_seconds(zipf(i, 50, 3600)) END", nullable=True),
]

FLAGS = ["is_refresh", "is_mobile", "is_new", "is_bounce", "is_link", "is_download", "is_event", "is_robot", "is_secure", "is_paid"]
SWITCHES = ["has_cookies", "has_scripts", "has_images", "has_flash", "has_java", "has_storage", "has_touch", "has_consent"]
TEXTS = ["source", "medium", "term", "content", "placement", "keyword_match", "social_network", "social_action", "order_number", "currency", "coupon", "param_1", "param_2", "param_3", "param_4", "param_5"]
TIMES = ["dns_ms", "connect_ms", "tls_ms", "wait_ms", "receive_ms", "render_ms", "ready_ms", "load_ms", "paint_ms", "idle_ms"]
COUNTS = ["clicks", "scrolls", "keys_pressed", "images", "requests", "bytes_kb", "redirects", "errors", "depth_of_visit", "views_before", "items_in_cart", "comments", "shares", "goal_1", "goal_2", "goal_3", "goal_4", "goal_5", "goal_6", "goal_7"]

VIEW = Table("view", "view_id", [
    *WHO,
    *WHERE,
    *WITH,
    *flags(FLAGS, 100, 20),
    *flags(SWITCHES, 120, 2),
    *rare_texts(TEXTS, 140, 25, 3000),
    *amounts(TIMES, 200, 5000),
    *amounts(COUNTS, 220, 100),
])


def site(r):
    return (r.zipf(SITES // 20) * 7919) % SITES + 1


def days(r, length):
    first = r.randint(1, DAYS - length + 1)
    return f"day BETWEEN '2024-07-{first:02}' AND '2024-07-{first + length - 1:02}'"


def count(condition):
    return f"SELECT count(*) FROM view WHERE {condition}"


def top(keys, condition, r, measures="count(*) AS c", offset=0):
    """The groups with the highest count; by their keys where it is the same."""
    places = ", ".join(str(at + 1) for at in range(len(keys.split(", "))))
    return f"""SELECT {keys}, {measures} FROM view WHERE {condition} GROUP BY {places}
        ORDER BY c DESC, {places} LIMIT {r.randint(9, 12)} OFFSET {offset}"""


def wide_sum(r):
    first = r.randint(0, 9)
    return f"SELECT {', '.join(f'sum(screen_width + {first + number})' for number in range(80))} FROM view"


HOST = "regexp_replace(referrer, '^https?://(www\\.)?([^/]+)/.*$', '\\2')"
ONE_FLAG = lambda r: f"{r.choice(FLAGS)} = {r.randint(0, 1)}"

SUITE = Suite("web", (1_000_000, 100_000), [VIEW], {
    "count": lambda r: "SELECT count(*) FROM view",
    "count-where": lambda r: count(f"campaign <> {r.randint(0, 4)}"),
    "sum-count-avg": lambda r: f"SELECT sum(campaign), count(*), avg(screen_width) FROM view WHERE site <> {site(r)}",
    "avg-of-bigint": lambda r: f"SELECT avg(user_id % {r.randint(10**9, 2 * 10**9)}) FROM view",
    "distinct-users": lambda r: f"SELECT count(DISTINCT user_id) FROM view WHERE site <> {site(r)}",
    "distinct-phrases": lambda r: f"SELECT count(DISTINCT phrase) FROM view WHERE engine <> {r.randint(1, 9)}",
    "first-and-last": lambda r: f"SELECT min(day), max(day), min(seen), max(seen) FROM view WHERE site <> {site(r)}",
    "campaigns": lambda r: f"SELECT campaign, count(*) AS c FROM view WHERE campaign <> {r.randint(0, 3)} GROUP BY campaign ORDER BY c DESC, campaign",
    "regions-by-users": lambda r: top("region", f"site <> {site(r)}", r, "count(DISTINCT user_id) AS c"),
    "regions-with-all": lambda r: top("region", f"site <> {site(r)}", r, "sum(campaign), count(*) AS c, avg(screen_width), count(DISTINCT user_id)"),
    "models-by-users": lambda r: top("phone_model", f"phone_model <> '' AND {days(r, 20)}", r, "count(DISTINCT user_id) AS c"),
    "phones-by-users": lambda r: top("phone, phone_model", f"phone_model <> '' AND {days(r, 20)}", r, "count(DISTINCT user_id) AS c"),
    "phrases": lambda r: top("phrase", f"phrase <> '' AND site <> {site(r)}", r),
    "phrases-by-users": lambda r: top("phrase", f"phrase <> '' AND site <> {site(r)}", r, "count(DISTINCT user_id) AS c"),
    "engine-and-phrase": lambda r: top("engine, phrase", f"phrase <> '' AND site <> {site(r)}", r),
    "users": lambda r: top("user_id", f"site <> {site(r)}", r),
    "users-and-phrases": lambda r: top("user_id, phrase", f"site <> {site(r)}", r),
    "users-phrases-minutes": lambda r: top("user_id, extract(minute FROM seen) AS m, phrase", f"site <> {site(r)}", r),
    "one-user": lambda r: count(f"user_id = (SELECT user_id FROM view WHERE view_id = {r.randint(1, 90_000)})"),
    "like": lambda r: count(f"url LIKE '%{r.word(4000)[:5]}%'"),
    "like-phrases": lambda r: top("phrase", f"url LIKE '%{r.word(400)[:4]}%' AND phrase <> ''", r, "min(url), count(*) AS c"),
    "like-and-not": lambda r: top("phrase", f"title LIKE '%{r.word(400)[:4]}%' AND url NOT LIKE '%{r.word(400)[:3]}%' AND phrase <> ''", r, "min(url), min(title), count(*) AS c, count(DISTINCT user_id)"),
    "whole-rows": lambda r: f"SELECT * FROM view WHERE url LIKE '%{r.word(400)}%' ORDER BY seen, view_id LIMIT 10",
    "phrases-by-time": lambda r: f"SELECT phrase FROM view WHERE phrase <> '' AND {days(r, 25)} ORDER BY seen, view_id LIMIT 10",
    "phrases-sorted": lambda r: f"SELECT phrase FROM view WHERE phrase <> '' AND {days(r, 25)} ORDER BY phrase LIMIT 10",
    "phrases-time-phrase": lambda r: f"SELECT phrase, seen FROM view WHERE phrase <> '' AND {days(r, 25)} ORDER BY seen, phrase, view_id LIMIT 10",
    "average-lengths": lambda r: f"SELECT site, avg(length(url)) AS l, count(*) AS c FROM view WHERE url <> '' AND {days(r, 25)} GROUP BY site HAVING count(*) > 1000 ORDER BY c DESC, site LIMIT 25",
    "referring-hosts": lambda r: f"SELECT {HOST} AS k, avg(length(referrer)) AS l, count(*) AS c, min(referrer) FROM view WHERE referrer <> '' AND {days(r, 25)} GROUP BY k HAVING count(*) > 100 ORDER BY c DESC, k LIMIT 25",
    "wide-sum": wide_sum,
    "wide-sum-of-columns": lambda r: f"SELECT {', '.join(f'sum({name})' for name in TIMES + COUNTS)} FROM view WHERE site <> {site(r)}",
    "engine-and-address": lambda r: top("engine, address", f"phrase <> '' AND {days(r, 25)}", r, "count(*) AS c, sum(is_refresh), avg(screen_width)"),
    "view-and-address": lambda r: top("url_hash, address", f"phrase <> '' AND {days(r, 25)}", r, "count(*) AS c, sum(is_refresh), avg(screen_width)"),
    "hash-and-address": lambda r: top("url_hash, address", f"site <> {site(r)}", r, "count(*) AS c, sum(is_refresh), avg(screen_width)"),
    "urls": lambda r: top("url", f"site <> {site(r)}", r),
    "urls-and-one": lambda r: top(f"{r.randint(1, 9)} + 0 AS one, url", f"site <> {site(r)}", r),
    "address-arithmetic": lambda r: top("address, address - 1 AS x, address - 2 AS y, address - 3 AS z", f"site <> {site(r)}", r),
    "pages-of-a-site": lambda r: top("url", f"site = {site(r)} AND {days(r, 20)} AND is_refresh = 0 AND url <> ''", r),
    "titles-of-a-site": lambda r: top("title", f"site = {site(r)} AND {days(r, 20)} AND title <> '' AND {ONE_FLAG(r)}", r),
    "links-page-100": lambda r: top("url", f"site = {site(r)} AND {days(r, 20)} AND is_refresh = 0", r, offset=100),
    "sources-page-500": lambda r: top("engine, kind, CASE WHEN engine = 0 AND campaign = 0 THEN referrer ELSE '' END AS src, url AS dst", f"site = {site(r)} AND {days(r, 20)}", r, offset=500),
    "windows-page-1000": lambda r: top("window_width, window_height", f"site = {site(r)} AND {days(r, 20)} AND is_refresh = 0", r, offset=1000),
    "minutes": lambda r: f"SELECT date_trunc('minute', seen) AS m, count(*) FROM view WHERE site = {site(r)} AND {days(r, 2)} GROUP BY m ORDER BY m LIMIT 10 OFFSET 50",
    "hours": lambda r: f"SELECT date_trunc('hour', seen) AS h, count(*), count(DISTINCT user_id), sum(price) FROM view WHERE {days(r, 7)} GROUP BY h ORDER BY h",
    "days-and-flags": lambda r: f"SELECT day, is_mobile, is_new, count(*), avg(load_ms), max(load_ms) FROM view WHERE {ONE_FLAG(r)} GROUP BY day, is_mobile, is_new ORDER BY day, is_mobile, is_new",
    "sources": lambda r: top("source, medium, content", f"{r.choice(['source', 'medium'])} <> ''", r, "sum(price), count(*) AS c"),
    "texts": lambda r: f"SELECT country, min(title), max(title), min(phrase), max(url) FROM view WHERE {days(r, 25)} GROUP BY country ORDER BY country",
    "filtered-counts": lambda r: f"SELECT language, count(*) FILTER (WHERE is_mobile = 1), sum(price) FILTER (WHERE kind < {r.randint(2, 9)}), sum(CASE WHEN is_new = 1 THEN load_ms ELSE 0 END) FROM view GROUP BY language ORDER BY language",
    "durations": lambda r: f"SELECT kind, avg(extract(epoch FROM left_at - seen)), max(left_at - seen) IS NULL FROM view WHERE left_at > seen + INTERVAL '{r.randint(1, 30)} seconds' GROUP BY kind ORDER BY kind",
    "sessions": lambda r: f"SELECT n, count(*) FROM (SELECT session, count(*) AS n FROM view WHERE {days(r, 10)} GROUP BY session) AS s GROUP BY n ORDER BY n",
    "session-lengths": lambda r: f"SELECT count(*), max(l), sum(n) FROM (SELECT session, extract(epoch FROM max(seen) - min(seen)) AS l, count(*) AS n FROM view WHERE {days(r, 10)} GROUP BY session HAVING count(*) > 1) AS s",
    "any-of-many": lambda r: count(f"site IN ({r.numbers(1, SITES, 40)}) AND (browser = {r.randint(1, 9)} OR system = {r.randint(1, 5)})"),
})
