"""TPC-H's queries as the first ones of their shapes that a server sees, beside the same ones later: Basalt alone.

The server starts anew each round, so that no plan, no selectivity and no learned size is there; rows are in the block cache
before anything is timed, since all tables have been read once.
"""
import math
import random
import statistics
import time

import data
import psycopg
from suites import tpch
from suites.suite import Draw, SEED

# Of the warm times, for the median query.
BAR = 1.5
LATER = 3


def in_turn(options, engines):
    suite, times = tpch.Tpch(options.scale_factor), {}
    server = next(server for server in engines() if server.name == "basalt")
    try:
        server.start()
        data.load_tpch(server.url, options.scale_factor)
        data.psql(server.url, "VACUUM ANALYZE")
        for number in range(options.rounds):
            server.stop()
            server.start()
            with psycopg.connect(server.url, autocommit=True) as connection:
                for table in data.TABLES:
                    read(connection, table)
                one_round(connection, suite, number, times)
    finally:
        server.remove()
    return summary(times)


def read(connection, table):
    with connection.cursor().copy(f"COPY {table} TO STDOUT") as rows:
        for _ in rows:
            pass


def one_round(connection, suite, number, times):
    """Each query once, in an order of its own, and only then each again."""
    order = list(suite.queries)
    random.Random(number).shuffle(order)
    for turn in range(1 + LATER):
        for name in order:
            text = suite.queries[name](Draw(f"{SEED} first {name} {number} {turn}"))
            began = time.perf_counter()
            connection.execute(text).fetchall()
            kind = "later" if turn else "first"
            times.setdefault(name, {"first": [], "later": []})[kind].append(time.perf_counter() - began)


def summary(times):
    queries = {}
    for name, of in sorted(times.items()):
        first, later = statistics.median(of["first"]), statistics.median(of["later"])
        queries[name] = {"first_ms": round(first * 1000, 2), "later_ms": round(later * 1000, 2), "ratio": round(first / later, 2)}
        print(name, queries[name], flush=True)
    ratios = [of["ratio"] for of in queries.values()]
    mean = round(math.exp(statistics.fmean(map(math.log, ratios))), 3)
    result = {"queries": queries, "median": statistics.median(ratios), "geometric_mean": mean, "bar": BAR}
    return result | ({"failed": "a bar was missed"} if result["median"] > BAR else {})
