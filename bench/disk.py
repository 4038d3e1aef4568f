"""Scans of what is in nobody's memory: before each, the server starts anew and the operating system drops its caches (as root), beside
DuckDB opening its file anew."""
import os
import shutil
import statistics
import time

import data
import duckdb
import psycopg
import tpch

ROWS, QUICK_ROWS = 20_000_000, 1_000_000
THREADS = 2
TABLE = "CREATE TABLE big (id bigint PRIMARY KEY, ts timestamp, who int, a double precision, b double precision, c double precision, t text)"
FILL = """INSERT INTO big SELECT i, timestamp '2026-01-01' + (i * 7919 % 10000019) * interval '1 second', (i * 104729 % 100003)::int,
    sqrt(i), ln(i), sin(i), md5(i::text) FROM {series}"""
QUERIES = {
    "three sums": "SELECT sum(a), sum(b), sum(c) FROM big",
    "groups": "SELECT who % 1000, count(*), sum(a), max(t) FROM big GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3",
    "texts of one row in 2,000": "SELECT sum(length(t)), max(t) FROM big WHERE who < 50",
    "one row": "SELECT * FROM big WHERE id = 777777",
}


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def timed(execute, text):
    began = time.perf_counter()
    rows = execute(text).fetchall()
    return (time.perf_counter() - began) * 1000, rows


def scans(options, engines):
    server = next(server for server in engines() if server.name == "basalt")
    folder = os.path.join(options.base, "duckdb-disk")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    rows, path, result = QUICK_ROWS if options.quick else ROWS, os.path.join(folder, "big.db"), {}

    def of_basalt(text):
        server.stop()
        drop_caches()
        server.start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            return timed(connection.execute, text)

    def of_duckdb(text):
        drop_caches()
        with duckdb.connect(path, config={"threads": THREADS}) as connection:
            return timed(connection.execute, text)

    try:
        server.start()
        data.psql(server.url, TABLE)
        data.psql(server.url, FILL.format(series=f"generate_series(1::bigint, {rows}) i"))
        data.psql(server.url, "CHECKPOINT")
        with duckdb.connect(path) as connection:
            # Without the index that a key would have there.
            connection.execute(TABLE.replace(" PRIMARY KEY", ""))
            connection.execute(FILL.format(series=f"(SELECT unnest(generate_series(1::bigint, {rows}::bigint)) AS i)"))
        for name, text in QUERIES.items():
            took = {"basalt": [], "duckdb": []}
            for _ in range(options.rounds):
                answers = {}
                for peer, ask in (("basalt", of_basalt), ("duckdb", of_duckdb)):
                    ms, answers[peer] = ask(text)
                    took[peer].append(ms)
                ours, theirs = (tpch.shown(answers[peer]) for peer in ("basalt", "duckdb"))
                assert ours == theirs, f"{name}: {ours} and {theirs}"
            ours, theirs = (statistics.median(took[peer]) for peer in ("basalt", "duckdb"))
            result[name] = {"basalt_ms": round(ours, 1), "duckdb_ms": round(theirs, 1), "ratio": round(ours / theirs, 2)}
            print(name, result[name], flush=True)
    finally:
        server.remove()
        shutil.rmtree(folder, ignore_errors=True)
    return result
