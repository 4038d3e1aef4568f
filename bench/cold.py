"""Gets of rows in columnar files, which the block cache holds, beside gets of the same rows hot: Basalt alone."""
import os
import time

import pgbench
import psycopg
import servers

# Of the rate of gets when all rows are hot.
BAR = 0.6
COLD_SHARE_MIN = 0.99
# A get that found nothing in the cache would read a block of thousands.
FILE_BYTES_PER_GET_MAX = 64
WARMUPS_MAX = 12

# `limit`: a quarter of a server's memory is the block cache's, which must hold the table's files; hot rows leave when they
# take three tenths. `batch`: large ones go into files at once. `then`: what is said when the rows are there.
SIDES = {
    "cold": dict(settings={"basalt.memory_limit": "12GB"}, batch=1_000_000, then="VACUUM accounts"),
    "hot": dict(
        settings={"basalt.memory_limit": "64GB", "basalt.cool_after": "20d", "basalt.freeze_rows_min": 10**12, "basalt.bulk_rows_min": 10**12},
        batch=100_000,
        then="CHECKPOINT",
    ),
}

TABLE = "CREATE TABLE accounts (id bigint PRIMARY KEY, branch int NOT NULL, balance bigint NOT NULL, opened timestamptz NOT NULL, holder text NOT NULL)"
ROWS = """\
INSERT INTO accounts
SELECT g, g % 1000, g * 2654435761 % 1000000007, timestamptz '2020-01-01 00:00:00+00' + g % 100000000 * interval '1 second', substr(md5(g::text), 1, 12)
FROM generate_series({}::bigint, {}::bigint) g
"""
SCAN = "SELECT count(*), sum(id), sum(branch), sum(balance), min(opened), min(holder) FROM accounts"

# The first is what `pgbench -S` asks for: the bar is for it.
GETS = {"one column": "balance", "whole row": "*"}


def gets(options, engines):
    """Each get on both servers in turn, round by round."""
    rows = {"cold": options.cold_rows, "hot": options.hot_rows or options.cold_rows}
    base = os.path.join(options.base, "run")
    os.makedirs(base, exist_ok=True)
    both = {name: servers.Basalt(os.path.join(base, name), options.port + at, side["settings"], options.unix) for at, (name, side) in enumerate(SIDES.items())}
    result = {"rounds": options.rounds, "bar": BAR}
    try:
        for name, server in both.items():
            result[name] = loaded(server, rows[name], SIDES[name]["batch"], SIDES[name]["then"])
            print(name, result[name], flush=True)
        assert result["cold"]["cold_share"] >= COLD_SHARE_MIN, "rows are hot that should be cold"
        assert result["hot"]["cold_share"] == 0, "rows are cold that should be hot"
        for what, columns in GETS.items():
            result[what] = in_turn(options, both, rows, columns)
            print(what, result[what], flush=True)
    finally:
        for server in both.values():
            server.remove()
    missed = {"failed": "a bar was missed"} if result["one column"]["rate_ratio"] < BAR else {}
    return result | missed


def loaded(server, rows, batch, then):
    """Starts it and fills the table; where the rows rest then, and in how many bytes."""
    server.remove()
    server.start()
    began = time.monotonic()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(TABLE)
        for first in range(1, rows + 1, batch):
            connection.execute(ROWS.format(first, min(first + batch - 1, rows)))
        connection.execute(then)
        seconds = round(time.monotonic() - began, 1)
        hot, hot_bytes = connection.execute("SELECT sum(hot_rows), sum(hot_bytes) FROM basalt.tablets WHERE table_name = 'accounts'").fetchone()
        cold, file_bytes = connection.execute("SELECT coalesce(sum(rows - deleted_rows), 0), coalesce(sum(bytes), 0) FROM basalt.files WHERE table_name = 'accounts'").fetchone()
    assert hot + cold == rows, f"{hot} hot and {cold} cold rows of {rows}"
    return {"rows": rows, "cold_share": round(float(cold / rows), 4), "hot_bytes": int(hot_bytes), "file_bytes": int(file_bytes), "load_s": seconds}


def in_turn(options, both, rows, columns):
    seconds = 3 if options.quick else options.serving_seconds
    scripts = {name: f"\\set id random(1, {rows[name]})\nSELECT {columns} FROM accounts WHERE id = :id;\n" for name in both}
    for name, server in both.items():
        warmed(options, server, scripts[name])
    runs = {name: [] for name in both}
    read = 0
    for _ in range(options.rounds):
        for name, server in both.items():
            run, per_get = one(options, server, scripts[name], seconds)
            runs[name].append(run)
            read = max(read, per_get)
    assert read <= FILE_BYTES_PER_GET_MAX, f"the block cache does not hold the files: {read} bytes were read per get"
    line = {name: pgbench.medians(of_server) for name, of_server in runs.items()}
    line["file_bytes_per_get_max"] = read
    line["rate_ratio"] = round(line["cold"]["per_s"] / line["hot"]["per_s"], 2)
    line["cpu_ratio"] = round(line["cold"]["cpu_us"] / line["hot"]["cpu_us"], 2)
    return line


def warmed(options, server, script):
    """Gets until no file is read any more."""
    with psycopg.connect(server.url) as connection:
        connection.execute(SCAN)
    for _ in range(WARMUPS_MAX):
        if one(options, server, script, 5)[1] <= FILE_BYTES_PER_GET_MAX:
            return
    raise RuntimeError(f"{server.dir}: files are still read after {WARMUPS_MAX} runs: the block cache does not hold them")


def one(options, server, script, seconds):
    """A run, and how many bytes of files the server read per get."""
    before = bytes_read(server)
    run = pgbench.run(options, server, ["-M", "prepared", "-c", "16", "-j", "2", "-T", str(seconds)], script)
    return run, round((bytes_read(server) - before) / (run.per_s * seconds), 1)


def bytes_read(server):
    """From files, the kernel's page cache among them (proc(5), io): sockets are not counted, they are not read but received from."""
    with open(f"/proc/{server.pid()}/io") as file:
        return int(file.readline().removeprefix("rchar:"))
