"""Row work over the wire: pgbench's own scripts and shapes that no script has, with the server's CPU time per transaction."""
import subprocess

import bars
import data
import pgbench

SCALE = 10
ROWS = 200_000

SETUP = f"""\
CREATE TABLE by_text (k text PRIMARY KEY, v int, t text);
INSERT INTO by_text SELECT 'user' || g, g, md5(g::text) FROM generate_series(1, {ROWS}) g;
CREATE TABLE by_two (a int, b bigint, v text, at timestamptz, PRIMARY KEY (a, b));
INSERT INTO by_two SELECT g % 1000, g / 1000, md5(g::text), now() FROM generate_series(1, {ROWS}) g;
CREATE TABLE child (id int PRIMARY KEY, parent text, n numeric(10,2));
INSERT INTO child SELECT g, 'user' || (g * 7 % {ROWS} + 1), g / 3.0 FROM generate_series(1, {ROWS}) g;
"""

KEY = f"\\set k random(1, {ROWS})\n"
TWO = f"\\set a random(0, 999)\n\\set b random(0, {ROWS // 1000 - 1})\n"
ACCOUNT = f"\\set aid random(1, {SCALE * 100_000})\n"

# Of the rate, where a shape names no other bars.
BARS = {"rate_ratio_min": 1.5}
GET_BARS = {"rate_ratio_min": 1.5, "cpu_ratio_max": 0.45, "p99_ratio_max": 1}
TPCB_BARS = {"rate_ratio_min": 1.6, "cpu_ratio_max": 0.45}

# Name: what pgbench runs, with which options; how many rows a transaction returns, if not one; the bars.
SHAPES = {
    "select prepared": dict(builtin="select-only", options=["-M", "prepared", "-c", "16", "-j", "2"], bars=GET_BARS),
    "select simple": dict(builtin="select-only", options=["-M", "simple", "-c", "16", "-j", "2"], bars=GET_BARS),
    "select extended": dict(builtin="select-only", options=["-M", "extended", "-c", "16", "-j", "2"]),
    "select one client": dict(builtin="select-only", options=["-M", "prepared", "-c", "1"], bars={"rate_ratio_min": 1, "p99_ratio_max": 1}),
    "tpcb prepared": dict(builtin="tpcb-like", options=["-M", "prepared", "-c", "16", "-j", "2"], bars=TPCB_BARS),
    "tpcb simple": dict(builtin="tpcb-like", options=["-M", "simple", "-c", "16", "-j", "2"]),
    "simple update prepared": dict(builtin="simple-update", options=["-M", "prepared", "-c", "16", "-j", "2"]),
    "text key": dict(script=KEY + "SELECT v, t FROM by_text WHERE k = 'user' || :k;\n", options=["-M", "prepared", "-c", "16", "-j", "2"]),
    "two-column key": dict(script=TWO + "SELECT v, at FROM by_two WHERE a = :a AND b = :b;\n", options=["-M", "prepared", "-c", "16", "-j", "2"]),
    "join of two gets": dict(
        script=KEY + "SELECT c.n, p.v, p.t FROM child c JOIN by_text p ON p.k = c.parent WHERE c.id = :k;\n",
        options=["-M", "prepared", "-c", "16", "-j", "2"],
    ),
    "range with limit": dict(
        script=TWO + "SELECT b, v FROM by_two WHERE a = :a AND b >= :b ORDER BY b LIMIT 10;\n",
        options=["-M", "prepared", "-c", "16", "-j", "2"],
    ),
    "update by key": dict(
        script=ACCOUNT + "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n",
        options=["-M", "prepared", "-c", "16", "-j", "2"],
    ),
    "any of 1000 keys": dict(
        script="SELECT abalance FROM pgbench_accounts WHERE aid = ANY(:keys);\n",
        options=["-M", "prepared", "-c", "4", "-j", "2", "-D", "keys={" + ",".join(str(1 + n * 997 % (SCALE * 100_000)) for n in range(1000)) + "}"],
        rows=1000,
        bars={"rows_per_s_min": 2_000_000},
    ),
    "100 gets in flight": dict(
        script="\\startpipeline\n" + (ACCOUNT + "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n") * 100 + "\\endpipeline\n",
        options=["-M", "prepared", "-c", "4", "-j", "2"],
        bars={"rate_ratio_min": 2},
    ),
}


def one(options, server, shape, seconds):
    arguments = [*shape["options"], "-T", str(seconds)]
    if "builtin" in shape:
        arguments += ["-b", shape["builtin"]]
    return pgbench.run(options, server, arguments, shape.get("script"))


def shapes(options, engines):
    """Each shape on both servers in turn, round by round."""
    seconds = 3 if options.quick else options.serving_seconds
    wanted = {name: shape for name, shape in SHAPES.items() if not options.shapes or any(part in name for part in options.shapes)}
    both = engines()
    result = {"seconds": seconds, "rounds": options.rounds}
    missed = []
    try:
        for server in both:
            server.start()
            subprocess.run(["pgbench", "-q", "-i", "-s", str(SCALE), server.url], check=True, capture_output=True)
            data.psql(server.url, SETUP)
            data.psql(server.url, "VACUUM ANALYZE")
        for name, shape in wanted.items():
            runs = {server.name: [] for server in both}
            for server in both:
                one(options, server, shape, 2)
            for _ in range(options.rounds):
                for server in both:
                    runs[server.name].append(one(options, server, shape, seconds))
            line = {server: pgbench.medians(values) for server, values in runs.items()}
            if len(line) == 2:
                ours, theirs = line["basalt"], line["postgres"]
                line["rate_ratio"] = round(ours["per_s"] / theirs["per_s"], 2)
                line["cpu_ratio"] = round(ours["cpu_us"] / theirs["cpu_us"], 2)
                if ours["p99_ms"] and theirs["p99_ms"]:
                    line["p99_ratio"] = round(ours["p99_ms"] / theirs["p99_ms"], 2)
            if "rows" in shape and "basalt" in line:
                line["rows_per_s"] = line["basalt"]["per_s"] * shape["rows"]
            missed += bars.missed(options, name, line, shape.get("bars", BARS))
            result[name] = line
            print(name, line, flush=True)
    finally:
        for server in both:
            server.remove()
    return bars.judged(result, missed)
