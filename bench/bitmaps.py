"""Conditions on columns with bitmaps (`CREATE INDEX ... USING bitmap`) beside the same on a table without, and what the index costs:
its size, and how long it takes to make."""
import random
import statistics
import time

import data
import psycopg

ROWS, QUICK_ROWS = 20_000_000, 1_000_000
RUNS = 5
COLUMNS = "shop, kind, color, price, day"
# Each with the share of rows that it is about, for whoever reads the figures.
QUESTIONS = {
    "one value of 50,000": lambda draw: f"shop = {draw.randrange(50_000)}",
    "one value of 500": lambda draw: f"kind = {draw.randrange(500)}",
    "one text of 20": lambda draw: f"color = 'color {draw.randrange(20)}'",
    "ten values of 50,000": lambda draw: f"shop IN ({', '.join(str(draw.randrange(50_000)) for _ in range(10))})",
    "three columns": lambda draw: f"kind = {draw.randrange(500)} AND color = 'color {draw.randrange(20)}' AND price < 40",
    "four columns of many rows each": lambda draw: f"kind < 150 AND color IN ('color 1', 'color {draw.randrange(2, 20)}') AND price < 30 AND day >= '2020-10-01'",
    "a range of 1 in 100": lambda draw: f"price BETWEEN {(low := draw.randrange(99))} AND {low + 0.99}",
    "a range of 1 in 5": lambda draw: f"price < {draw.randrange(19, 21)}",
}
SUMS = {"rows": "count(*)", "sum": "sum(amount), max(note)"}


def fill(server, rows):
    for table in ("plain", "indexed"):
        data.psql(server.url, f"CREATE TABLE {table} (id bigint PRIMARY KEY, shop int, kind int, color text, price numeric(8,2), day date, amount bigint, note text)")
    data.psql(server.url, f"""INSERT INTO plain SELECT i, h % 50000, (h >> 9) % 500, 'color ' || (h >> 17) % 20, (h >> 23) % 10000 / 100.0,
        date '2020-01-01' + ((h >> 29) % 366)::int, h % 1000, 'note ' || (h >> 13) % 9973
        FROM (SELECT i, ('x' || substr(md5(i::text), 1, 12))::bit(48)::bigint AS h FROM generate_series(1, {rows}) i) s""")
    data.psql(server.url, "INSERT INTO indexed SELECT * FROM plain")
    data.psql(server.url, "VACUUM FULL")


def timed(connection, text):
    began = time.perf_counter()
    cursor = connection.execute(text)
    rows = cursor.fetchall() if cursor.description else None
    return (time.perf_counter() - began) * 1000, rows


def beside_none(options, engines):
    server = next(server for server in engines() if server.name == "basalt")
    result = {}
    try:
        server.start()
        rows = QUICK_ROWS if options.quick else ROWS
        fill(server, rows)
        with psycopg.connect(server.url, autocommit=True) as connection:
            size = lambda table: connection.execute("SELECT sum(bytes) FROM basalt.files WHERE table_name = %s", [table]).fetchone()[0]
            took, _ = timed(connection, f"CREATE INDEX ON indexed USING bitmap ({COLUMNS})")
            plain, indexed = size("plain"), size("indexed")
            result["index"] = {"rows": rows, "made_ms": round(took), "bytes_per_row": round(float(indexed - plain) / rows, 2), "of_the_table": round(float(indexed - plain) / float(plain), 3)}
            print("index", result["index"], flush=True)
            for name, question in QUESTIONS.items():
                for what, outputs in SUMS.items():
                    draw, took = random.Random(f"{name} {what}"), {"plain": [], "indexed": []}
                    for run in range(RUNS * options.rounds):
                        condition, answers = question(draw), {}
                        for table in sorted(took, reverse=run % 2 == 1):
                            ms, answers[table] = timed(connection, f"SELECT {outputs} FROM {table} WHERE {condition}")
                            if run:
                                took[table].append(ms)
                        assert answers["plain"] == answers["indexed"], f"{condition}: {answers}"
                    plain, indexed = (statistics.median(took[table]) for table in ("plain", "indexed"))
                    result[f"{name}, {what}"] = {"plain_ms": round(plain, 2), "indexed_ms": round(indexed, 2), "ratio": round(indexed / plain, 2)}
                    print(f"{name}, {what}", result[f"{name}, {what}"], flush=True)
    finally:
        server.remove()
    return result
