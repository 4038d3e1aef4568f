"""TPC-H where five of a hundred rows are hot and two are deleted marks, beside the same rows all cold: Basalt alone."""
import os

import data
import psycopg
import servers
import tpch

# Of the clean server's times.
BAR = 1.25
# Nothing cools by itself while it is measured, and UPDATE leaves its rows hot, however many.
SETTINGS = {"basalt.cool_after": "10h", "basalt.large_changes_min": 10**9}
DELETED = {
    "lineitem": "(l_orderkey * 7 + l_linenumber) % 50 = 0",
    "partsupp": "(ps_partkey * 7 + ps_suppkey) % 50 = 0",
}
# Rows that are written again as they were: they go from files into hot pages.
TOUCHED = {
    "lineitem": "l_comment = l_comment WHERE (l_orderkey * 3 + l_linenumber) % 20 = 1",
    "orders": "o_comment = o_comment WHERE o_orderkey % 20 = 1",
    "partsupp": "ps_comment = ps_comment WHERE (ps_partkey * 3 + ps_suppkey) % 20 = 1",
    "part": "p_comment = p_comment WHERE p_partkey % 20 = 1",
    "customer": "c_comment = c_comment WHERE c_custkey % 20 = 1",
}


def in_turn(options, _engines):
    """Query by query, alternating; both answer alike."""
    base = os.path.join(options.base, "run")
    os.makedirs(base, exist_ok=True)
    both = {name: servers.Basalt(os.path.join(base, name), options.port + at, SETTINGS, options.unix) for at, name in enumerate(["mixed", "clean"])}
    try:
        shares = {name: loaded(server, options.scale_factor, mixed=name == "mixed") for name, server in both.items()}
        print(shares, flush=True)
        assert shares["mixed"]["hot"] > 0.04 and shares["mixed"]["deleted"] > 0.01, "rows are not where they should be"
        run = {name: asked(server) for name, server in both.items()}
        compared = tpch.compared(tpch.queries(), run, options.rounds)
    finally:
        for server in both.values():
            server.remove()
    result = {"shares": shares, "bar": BAR} | compared
    return result | ({"failed": "a bar was missed"} if result["geometric_mean"] > BAR else {})


def asked(server):
    connection = psycopg.connect(server.url, autocommit=True)
    return lambda text: connection.execute(text).fetchall()


def loaded(server, scale_factor, mixed):
    """Starts and fills it; what part of lineitem's rows are hot, and of its rows in files deleted."""
    os.makedirs(os.path.dirname(server.dir), exist_ok=True)
    server.remove()
    server.start()
    data.load_tpch(server.url, scale_factor)
    before = [] if mixed else [f"DELETE FROM {table} WHERE {rows}" for table, rows in DELETED.items()]
    changes = [f"DELETE FROM {table} WHERE {rows}" for table, rows in DELETED.items()] + [f"UPDATE {table} SET {rows}" for table, rows in TOUCHED.items()]
    with psycopg.connect(server.url, autocommit=True) as connection:
        for statement in before + ["VACUUM FULL"] + (changes if mixed else []) + ["ANALYZE", "CHECKPOINT"]:
            connection.execute(statement)
        hot, rows = connection.execute("SELECT sum(hot_rows), (SELECT count(*) FROM lineitem) FROM basalt.tablets WHERE table_name = 'lineitem'").fetchone()
        cold, deleted = connection.execute("SELECT sum(rows), sum(deleted_rows) FROM basalt.files WHERE table_name = 'lineitem'").fetchone()
    return {"hot": round(float(hot / rows), 4), "deleted": round(float(deleted / cold), 4)}
