"""One snapshot stays open while 1,000 rows change 20,000 times a second: memory, and latencies of sessions beside it.

Rounds on a server where it is open, in turn with the same on one where none is: a noisy minute is noisy for both. Of the
two, one is paused while the other is measured."""
import os
import shutil
import subprocess

import bars
import data
import overload
import pgbench
import psycopg
import servers as machine

ROWS = 1_000
OTHER_ROWS = 100_000
UPDATES_PER_S = 20_000
OTHERS_PER_S = 200
ROUND_SECONDS = 30
# Before each round.
SETTLING_SECONDS = 5
# The updates have to come as fast as they are asked for, or the rest says nothing.
BARS = {"updates_share_min": 0.95, "grown_bytes_max": 200_000_000, "p99_ratio_max": 1.3}

SETUP = f"""\
CREATE TABLE changing (id int PRIMARY KEY, n bigint NOT NULL, filler text NOT NULL);
INSERT INTO changing SELECT g, 0, repeat('x', 100) FROM generate_series(1, {ROWS}) g;
CREATE TABLE beside (id int PRIMARY KEY, n bigint NOT NULL);
INSERT INTO beside SELECT g, g FROM generate_series(1, {OTHER_ROWS}) g;
"""
UPDATE = f"\\set id random(1, {ROWS})\nUPDATE changing SET n = n + 1 WHERE id = :id;\n"
GET = f"\\set id random(1, {OTHER_ROWS})\nSELECT n FROM beside WHERE id = :id;\n"
PUT = f"\\set id random(1, {OTHER_ROWS})\nUPDATE beside SET n = n + 1 WHERE id = :id;\n"


def held(options, engines):
    seconds = options.paced_seconds
    rounds = max(seconds // ROUND_SECONDS, 1)
    result = {"rows": ROWS, "updates_per_s": UPDATES_PER_S, "others_per_s": OTHERS_PER_S, "seconds": rounds * ROUND_SECONDS}
    for kind in [type(server) for server in engines()]:
        folders = {name: os.path.join(options.base, "run", name) for name in ("without", "with")}
        both = {name: kind(folder, options.port + at, unix=options.unix) for at, (name, folder) in enumerate(folders.items())}
        try:
            for server in both.values():
                server.remove()
                server.start()
                data.psql(server.url, SETUP)
                pressure(options, server, ROUND_SECONDS)
            result[kind.name] = held_beside(options, both, rounds)
        finally:
            for server in both.values():
                server.remove()
    return bars.judged(result, bars.missed(options, "snapshot", result.get("basalt", {}), BARS))


def held_beside(options, both, rounds):
    name_of_engine, runs = both["with"].name, {name: [] for name in both}
    memory = machine.memory_bytes(both["with"].pid())
    grown = 0
    with psycopg.connect(both["with"].url, autocommit=False) as snapshot:
        snapshot.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        seen = snapshot.execute("SELECT count(*), sum(n) FROM changing").fetchone()
        for at in range(rounds):
            for name in both if at % 2 == 0 else reversed(both):
                (other,) = (server for of, server in both.items() if of != name)
                with machine.paused(other):
                    # What it had put off is due now.
                    pressure(options, both[name], SETTLING_SECONDS)
                    runs[name].append(pressure(options, both[name], ROUND_SECONDS))
                grown = max(grown, machine.memory_bytes(both["with"].pid()) - memory)
        again = snapshot.execute("SELECT count(*), sum(n) FROM changing").fetchone()
        assert seen == again, f"{name_of_engine}: the snapshot saw {seen}, then {again}"
    result = {name: overload.medians(of_one) for name, of_one in runs.items()}
    result["updates_share"] = round(min(run["updates_per_s"] for run in runs["with"]) / UPDATES_PER_S, 3)
    # An old snapshot may cost more than a young one.
    late = {name: overload.medians(of_one[-max(rounds // 3, 1):]) for name, of_one in runs.items()}
    ratios = [one["with"]["others_p99_ms"] / one["without"]["others_p99_ms"] for one in (result, late)]
    result |= {"p99_ratio": round(max(ratios), 2), "p99_ratio_all": round(ratios[0], 2), "p99_ratio_late": round(ratios[1], 2)}
    result["p99_ms_of_rounds"] = {name: [run["others_p99_ms"] for run in of_one] for name, of_one in runs.items()}
    # PostgreSQL's versions lie in its files and shared buffers, not in its first process.
    return result | ({"grown_bytes": grown} if name_of_engine == "basalt" else {})


def pressure(options, server, seconds):
    """Updates of the few rows at their rate; two other sessions read and write another table meanwhile."""
    logs = os.path.join(options.base, f"snapshot-{server.port}")
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs)
    update, get, put = (pgbench.written(options, name, text) for name, text in (("update", UPDATE), ("get", GET), ("put", PUT)))
    common = ["pgbench", "-n", "-M", "prepared", "-T", str(seconds)]
    updates = [*common, "-c", "16", "-j", "2", "-R", str(UPDATES_PER_S), "-f", update, server.url]
    others = [*common, "-c", "2", "-j", "1", "-R", str(OTHERS_PER_S), "-f", get, "-f", put]
    others += ["-l", "--log-prefix", os.path.join(logs, "log"), server.url]
    # Whatever becomes of the others, nobody leaves before the updates have ended.
    with subprocess.Popen(updates, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        subprocess.run(others, check=True, capture_output=True)
        output, errors = running.communicate()
    assert running.returncode == 0, errors
    latencies = sorted(pgbench.read_latencies(logs))
    shutil.rmtree(logs)
    at = lambda share: pgbench.quantile_ms(latencies, share)
    return {"updates_per_s": round(pgbench.rate(output)), "others_p50_ms": at(0.5), "others_p99_ms": at(0.99), "others_p99.9_ms": at(0.999)}
