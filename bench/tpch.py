"""TPC-H's tables in DuckDB, and the queries of its validation as they are, of two sides that must answer alike.

The query texts are those of testing/it/tpch. Beside other engines, with parameters drawn anew: suites/tpch.py.
"""
import glob
import math
import os
import statistics
import subprocess
import time

import data
import duckdb

QUERIES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "testing/it/tpch/q*.sql")
THREADS = 2


def queries():
    return {os.path.basename(path)[1:3]: open(path).read() for path in sorted(glob.glob(QUERIES))}


def compared(queries, run, rounds):
    """Of two that must answer alike, by name: medians, and those of the first to those of the second."""
    (one, other), result = run, {}
    for name, text in queries.items():
        times = {engine: [] for engine in run}
        answers = {engine: shown(ask(text)) for engine, ask in run.items()}
        assert answers[one] == answers[other], f"query {name}: the answers differ"
        for _ in range(rounds):
            for engine, ask in run.items():
                began = time.perf_counter()
                ask(text)
                times[engine].append(time.perf_counter() - began)
        medians = {engine: statistics.median(of) for engine, of in times.items()}
        result[name] = {f"{engine}_ms": round(seconds * 1000, 2) for engine, seconds in medians.items()}
        result[name]["ratio"] = round(medians[one] / medians[other], 2)
        print(name, result[name], flush=True)
    ratios = [of["ratio"] for of in result.values()]
    return {"queries": result, "geometric_mean": round(math.exp(statistics.fmean(map(math.log, ratios))), 3), "worst": max(ratios)}


def shown(rows):
    """Numbers to nine digits: averages of decimals are floats in DuckDB."""
    cell = lambda value: f"{float(value):.9g}" if isinstance(value, (int, float)) or hasattr(value, "as_tuple") else str(value)
    return [tuple("" if value is None else cell(value) for value in row) for row in rows]


def load_duckdb(folder, scale_factor):
    connection = duckdb.connect(os.path.join(folder, "tpch.db"))
    connection.execute(f"SET threads = {THREADS}")
    for table in data.TABLES:
        csv = os.path.join(folder, f"{table}.csv")
        with open(csv, "wb") as out:
            subprocess.run(data.csv_command(table, scale_factor), stdout=out, stderr=subprocess.DEVNULL, check=True)
        connection.execute(f"CREATE TABLE {table} ({data.DDL[table].split(', PRIMARY KEY')[0].replace('PRIMARY KEY', 'NOT NULL')})")
        connection.execute(f"COPY {table} FROM '{csv}' (FORMAT csv, HEADER)")
        os.remove(csv)
    connection.execute("CHECKPOINT")
    return connection
