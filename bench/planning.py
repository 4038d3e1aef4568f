"""Time from the text of a join to its plan, of statements that nobody has seen before: EXPLAIN on both servers.

Every round draws new literals, new aliases, another order of FROM and of conditions, so that no cache of texts or plans
helps. Tables have 100 to 100,000 rows: of the large ones Basalt tries conditions on a sample, which is part of planning.
PostgreSQL plans as it is installed: exhaustively up to 11 relations in groups of 8, by chance (GEQO) beyond.
"""
import random
import statistics
import time

import data
import psycopg

TABLES = 60
SIZES = [100, 1_000, 10_000, 100_000]
ROUNDS_PER_ROUND = 4


def setup():
    for number in range(TABLES):
        rows = SIZES[number % len(SIZES)]
        links = "".join(f", f{other} int" for other in range(1, TABLES)) if number == 0 else ""
        values = "".join(f", g * {other} % {SIZES[other % len(SIZES)]}" for other in range(1, TABLES)) if number == 0 else ""
        yield f"CREATE TABLE t{number} (id int PRIMARY KEY, next int, kind int, v int, name text{links});"
        following = SIZES[(number + 1) % len(SIZES)]
        yield f"INSERT INTO t{number} SELECT g, g % {following}, g % 20, g * 7 % 1000, 'n' || g{values} FROM generate_series(0, {rows - 1}) g;"
    yield "ANALYZE;"


def chain(count, draw):
    return [f"t{at}.next = t{at + 1}.id" for at in range(count - 1)]


def star(count, draw):
    return [f"t0.f{at} = t{at}.id" for at in range(1, count)]


def clique(count, draw):
    return [f"t{a}.v + {b} = t{b}.kind + {a}" for a in range(count) for b in range(a + 1, count)]


def one_class(count, draw):
    return [f"t{at}.kind = t{at + 1}.kind" for at in range(count - 1)]


def tree(count, draw):
    return [f"t{draw.randrange(at)}.v = t{at}.id" for at in range(1, count)]


def cycle(count, draw):
    return [*chain(count, draw), f"t{count - 1}.v = t0.v"]


SHAPES = {"chain": chain, "star": star, "tree": tree, "cycle": cycle, "one class": one_class, "clique": clique}
COUNTS = [5, 10, 20, 30, 60]
# What planning may take, in milliseconds: see README.md.
BARS = {10: 5, 30: 50}
BARRED = {10: SHAPES, 30: ["chain", "star"]}


def statement(shape, count, draw):
    """A join with conditions on a third of its tables, in words that no other statement has."""
    conditions = SHAPES[shape](count, draw)
    for at in draw.sample(range(count), count // 3):
        conditions.append(draw.choice([f"t{at}.v < {draw.randrange(100, 900)}", f"t{at}.kind = {draw.randrange(20)}", f"t{at}.name LIKE 'n{draw.randrange(1000)}%'"]))
    draw.shuffle(conditions)
    names = {at: f"x{draw.randrange(10**6)}_{at}" for at in range(count)}
    order = draw.sample(range(count), count)
    tables = ", ".join(f"t{at} {names[at]}" for at in order)
    text = f"SELECT {names[0]}.kind, count(*), sum({names[count - 1]}.v) FROM {tables} WHERE {' AND '.join(conditions)} GROUP BY 1"
    for at in range(count - 1, -1, -1):
        text = text.replace(f" t{at}.", f" {names[at]}.")
    return text


def first_seen(options, engines):
    servers = engines()
    rounds = options.rounds * ROUNDS_PER_ROUND
    result = {"rounds": rounds}
    try:
        for server in servers:
            server.start()
            data.psql(server.url, "\n".join(setup()))
        connections = {server.name: psycopg.connect(server.url, autocommit=True) for server in servers}
        failed = []
        for count in COUNTS:
            for shape in SHAPES:
                figures = compared(shape, count, rounds, connections)
                result[f"{shape} of {count}"] = figures
                print(f"{shape} of {count}", figures, flush=True)
                bar = BARS.get(count) if shape in BARRED.get(count, []) else None
                if bar and "basalt" in figures and figures["basalt"]["median_ms"] > bar:
                    failed.append(f"{shape} of {count} takes more than {bar} ms")
        return result | {"failed": failed}
    finally:
        for server in servers:
            server.remove()


def compared(shape, count, rounds, connections):
    times = {name: [] for name in connections}
    for number in range(rounds):
        text = statement(shape, count, random.Random(f"{shape} {count} {number}"))
        for name, connection in connections.items():
            began = time.perf_counter()
            connection.execute("EXPLAIN " + text).fetchall()
            times[name].append((time.perf_counter() - began) * 1000)
    return {name: {"median_ms": round(statistics.median(of), 2), "worst_ms": round(max(of), 2)} for name, of in times.items()}
