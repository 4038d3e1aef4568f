"""Bulk load: psql's \\copy of a CSV file into a table with a primary key, wall time."""
import statistics
import time

import data
import psycopg


def copy_rows(options, engines):
    """Rounds alternate between the engines, so that a noisy minute is noisy for both."""
    rows = 100_000 if options.quick else 1_000_000
    path = data.lineitem_csv(options.base, rows)
    servers = engines()
    seconds = {server.name: [] for server in servers}
    for server in servers:
        server.start()
    try:
        for _ in range(options.rounds):
            for server in servers:
                data.psql(server.url, "DROP TABLE IF EXISTS lineitem")
                data.psql(server.url, f"CREATE TABLE lineitem ({data.DDL['lineitem']})")
                # Whatever the round before left to do.
                data.psql(server.url, "CHECKPOINT")
                began = time.monotonic()
                data.psql(server.url, f"\\copy lineitem from '{path}' csv header")
                seconds[server.name].append(round(time.monotonic() - began, 3))
        for server in servers:
            with psycopg.connect(server.url) as connection:
                found = connection.execute("SELECT count(*) FROM lineitem").fetchone()[0]
                assert found == rows, f"{server.name} has {found} rows of {rows}"
    finally:
        for server in servers:
            server.remove()
    result = {"rows": rows}
    for name, times in seconds.items():
        median = statistics.median(times)
        result[name] = {"median_s": median, "rows_per_s": round(rows / median), "all_s": times}
    return result
