"""Single-row durable inserts by 16 clients: unthrottled rates, and a paced run under a long snapshot."""
import glob
import os
import re
import shutil
import statistics
import subprocess
import time

import data
import psycopg

CLIENTS = 16
SCRIPT = f"""\
\\set n :n + 1
\\set id :client_id * 1000000000000 + :n
INSERT INTO events VALUES (:id, :client_id, now(), 12.34, '{data.PAYLOAD}');
"""


def pgbench(options, server, seconds, first, extra=()):
    """Runs the script; `first` keeps keys of different runs apart. Returns transactions per second."""
    script = os.path.join(options.base, "insert.sql")
    with open(script, "w") as file:
        file.write(SCRIPT)
    command = ["pgbench", "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds), "-D", f"n={first}", "-f", script]
    output = subprocess.run([*command, *extra, server.url], check=True, capture_output=True, text=True).stdout
    failed = re.search(r"number of failed transactions: (\d+)", output)
    assert failed is None or failed[1] == "0", output
    return float(re.search(r"tps = ([\d.]+)", output)[1])


def durable(options, engines):
    seconds = 5 if options.quick else 30
    servers = engines()
    rates = {server.name: [] for server in servers}
    try:
        for server in servers:
            server.start()
            data.psql(server.url, data.EVENTS)
        for at in range(options.rounds):
            for server in servers:
                rates[server.name].append(round(pgbench(options, server, seconds, first=at * 100_000_000), 1))
    finally:
        for server in servers:
            server.remove()
    result = {"clients": CLIENTS, "seconds": seconds}
    return result | {name: {"median_per_s": statistics.median(values), "all_per_s": values} for name, values in rates.items()}


def paced(options, engines):
    """Half of the unthrottled rate while one snapshot stays open and rows freeze and merge beneath it."""
    result = {"clients": CLIENTS, "seconds": options.paced_seconds}
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
    unthrottled = pgbench(options, server, 5 if options.quick else 30, first=0)
    target = unthrottled / 2
    logs = os.path.join(options.base, f"latencies-{server.name}")
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs)
    with psycopg.connect(server.url, autocommit=False) as snapshot:
        snapshot.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = snapshot.execute("SELECT count(*), sum(id) FROM events").fetchone()
        began = time.monotonic()
        extra = ["-R", str(target), "-l", "--log-prefix", os.path.join(logs, "log")]
        achieved = pgbench(options, server, options.paced_seconds, first=100_000_000, extra=extra)
        held = time.monotonic() - began
        after = snapshot.execute("SELECT count(*), sum(id) FROM events").fetchone()
        assert before == after, f"{server.name}: the snapshot saw {before}, then {after}"
    latencies = sorted(read_latencies(logs))
    shutil.rmtree(logs)
    at = lambda share: latencies[min(int(len(latencies) * share), len(latencies) - 1)] / 1000
    result = {
        "unthrottled_per_s": round(unthrottled, 1),
        "target_per_s": round(target, 1),
        "achieved_share": round(achieved / target, 4),
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


def read_latencies(folder):
    """Microseconds, from the time at which each transaction was due (pgbench manual, "Per-Transaction Logging")."""
    for path in glob.glob(os.path.join(folder, "*")):
        with open(path) as file:
            for line in file:
                latency = line.split()[2]
                if latency not in ("skipped", "failed"):
                    yield int(latency)
