"""Single-row durable inserts by many clients: unthrottled rates, and a paced run under a long snapshot."""
import time

import bars
import data
import pgbench
import psycopg

# Of the rate, by the number of clients.
BARS = {64: {"rate_ratio_min": 2}}

SCRIPT = f"""\
\\set n :n + 1
\\set id :client_id * 1000000000000 + :n
INSERT INTO events VALUES (:id, :client_id, now(), 12.34, '{data.PAYLOAD}');
"""


def insert(options, server, seconds, first, extra=(), **how):
    """One run of the script; `first` keeps keys of different runs apart."""
    arguments = ["-M", "prepared", "-c", str(options.insert_clients), "-j", "2", "-T", str(seconds), "-D", f"n={first}", *extra]
    return pgbench.run(options, server, arguments, SCRIPT, **how)


def durable(options, engines):
    seconds = 5 if options.quick else 30
    servers = engines()
    runs = {server.name: [] for server in servers}
    try:
        for server in servers:
            server.start()
            data.psql(server.url, data.EVENTS)
        for at in range(options.rounds):
            for server in servers:
                runs[server.name].append(insert(options, server, seconds, first=at * 100_000_000))
    finally:
        for server in servers:
            server.remove()
    result = {"clients": options.insert_clients, "seconds": seconds}
    for name, of_server in runs.items():
        result[name] = pgbench.medians(of_server) | {"all_per_s": [round(run.per_s) for run in of_server]}
    if len(servers) == 2:
        result["rate_ratio"] = round(result["basalt"]["per_s"] / result["postgres"]["per_s"], 2)
    return bars.judged(result, bars.missed(options, "inserts", result, BARS.get(options.insert_clients, {})))


def paced(options, engines):
    """Half of the unthrottled rate while one snapshot stays open and rows freeze and merge beneath it."""
    result = {"clients": options.insert_clients, "seconds": options.paced_seconds}
    # Rows cool soon, so that freezing and compaction run all the time.
    for server in engines(basalt={"basalt.cool_after": "1s", "basalt.freeze_rows_min": 10_000}):
        try:
            server.start()
            data.psql(server.url, data.EVENTS)
            result[server.name] = paced_one(options, server)
        finally:
            server.remove()
    return result


def paced_one(options, server):
    unthrottled = insert(options, server, 5 if options.quick else 30, first=0).per_s
    target = unthrottled / 2
    with psycopg.connect(server.url, autocommit=False) as snapshot:
        snapshot.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = snapshot.execute("SELECT count(*), sum(id) FROM events").fetchone()
        began = time.monotonic()
        run = insert(options, server, options.paced_seconds, first=100_000_000, extra=["-R", str(target)], sampled=1)
        held = time.monotonic() - began
        after = snapshot.execute("SELECT count(*), sum(id) FROM events").fetchone()
        assert before == after, f"{server.name}: the snapshot saw {before}, then {after}"
    at = lambda share: pgbench.quantile_ms(run.latencies_us, share)
    result = {
        "unthrottled_per_s": round(unthrottled, 1),
        "target_per_s": round(target, 1),
        "achieved_share": round(run.per_s / target, 4),
        "snapshot_held_s": round(held, 1),
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "p99.9_ms": at(0.999),
        "worst_ms": at(1),
    }
    if server.name == "basalt":
        with psycopg.connect(server.url) as connection:
            row = connection.execute("SELECT frozen_rows, compactions, checkpoints, errors FROM basalt.background").fetchone()
            result["background"] = dict(zip(("frozen_rows", "compactions", "checkpoints", "errors"), row))
    return result
