"""TPC-C, YCSB and CH-benCHmark by the client in oltp/: rates, latencies, the server's CPU time per transaction."""
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import time

import bars
import data
import pgbench
import servers

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUERIES = sorted(pathlib.Path(__file__).parent.glob("oltp/ch/q*.sql"))
# YCSB's own order: what inserts comes last, E on rows loaded anew.
CORE_WORKLOADS = ["A", "B", "C", "F", "D", "E"]
# W is not YCSB's: updates alone.
WORKLOADS = [*CORE_WORKLOADS, "W"]
QUERY_SECONDS_MAX = 300
TPCC_BARS = {"rate_ratio_min": 2.5}
YCSB_BARS = {"rate_ratio_min": 1.5}
INDEXES_BARS = {"rate_share_min": 0.5}
INDEXES = 10


def build_environment():
    target = os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/basalt/target"))
    return os.environ | {"CARGO_TARGET_DIR": target}


def client():
    """The client's binary: BENCH_CLIENT, or built here."""
    if "BENCH_CLIENT" in os.environ:
        return os.environ["BENCH_CLIENT"]
    environment = build_environment()
    subprocess.run(["cargo", "build", "-q", "--release", "-p", "basalt-bench"], check=True, cwd=ROOT, env=environment)
    return os.path.join(environment["CARGO_TARGET_DIR"], "release/basalt-bench")


def ask(binary, *command):
    """What the client says in its last line; one that broke off is an error, broken conditions are not."""
    return last_line(subprocess.run([binary, *command], stdout=subprocess.PIPE, text=True).stdout, command)


def last_line(output, command):
    lines = output.splitlines()
    if not lines:
        raise RuntimeError(f"the client failed: {' '.join(command)}")
    return json.loads(lines[-1])


def load(options, binary, server, *what):
    with_clause = ["--with", f"orientation = '{options.orientation}'"] if server.name == "basalt" else []
    result = ask(binary, "load", *what, *with_clause, "--url", server.url)
    # What PostgreSQL's autovacuum would do some minutes later; Basalt has no statistics and cools by itself.
    if server.name == "postgres":
        data.psql(server.url, "VACUUM ANALYZE")
    return result


def lengths(options):
    seconds, warmup = (5, 1) if options.quick else (options.oltp_seconds, 10)
    return ["--seconds", str(seconds), "--warmup", str(warmup), "--clients", str(options.clients), "--isolation", options.isolation]


def run(options, binary, server, seed, *what):
    """One run of the client; CPU time counts the transactions of the warm-up, too."""
    before = pgbench.cpu_seconds(server)
    result = ask(binary, "run", *what, "--url", server.url, "--seed", str(seed), *lengths(options))
    # Backends that end are counted with their parent.
    time.sleep(0.3)
    used = pgbench.cpu_seconds(server) - before
    result["cpu_us"] = round(used / max(result["with_warmup"], 1) * 1e6, 1)
    return result


def median_of(runs, *path):
    values = []
    for result in runs:
        for name in path:
            result = result.get(name, {})
        if result != {}:
            values.append(result)
    return round(statistics.median(values), 3) if values else None


def summary(runs, rate):
    figures = [rate, "cpu_us", "client_cpu_us", "p50_ms", "p99_ms"]
    line = {name: median_of(runs, name) for name in figures if name in runs[0]}
    line["max_ms"] = max(result["max_ms"] for result in runs)
    line["retries"] = sum(result["retries"] for result in runs)
    errors = {}
    for result in runs:
        for sqlstate, error in result["errors"].items():
            known = errors.setdefault(sqlstate, {"count": 0, "example": error["example"]})
            known["count"] += error["count"]
    line["errors"] = errors
    kinds = sorted({kind for result in runs for kind in result["kinds"]})
    line["kinds"] = {}
    for kind in kinds:
        of_kind = {name: median_of(runs, "kinds", kind, name) for name in ["p50_ms", "p99_ms"]}
        of_kind["max_ms"] = max(result["kinds"][kind]["max_ms"] for result in runs if kind in result["kinds"])
        line["kinds"][kind] = of_kind
    return line


def compare(line, rate):
    """Adds ratios where both were measured."""
    ours, theirs = line.get("basalt"), line.get("postgres")
    if ours and theirs and theirs[rate] and theirs["cpu_us"]:
        line["rate_ratio"] = round(ours[rate] / theirs[rate], 2)
        line["cpu_ratio"] = round(ours["cpu_us"] / theirs["cpu_us"], 2)


def tell(name, line):
    """The figures of one line, without those of each kind."""
    shown = {key: {k: v for k, v in value.items() if k != "kinds"} if isinstance(value, dict) else value for key, value in line.items()}
    print(name, shown, flush=True)


def tpcc(options, engines):
    """All five transactions, round by round in turn, and then the consistency conditions."""
    binary, both = client(), engines()
    pipelined = ["--pipelined"] if options.pipelined else []
    result = {"warehouses": options.warehouses, "clients": options.clients, "isolation": options.isolation, "pipelined": options.pipelined, "rounds": options.rounds}
    try:
        result["load"] = {}
        for server in both:
            server.start()
            result["load"][server.name] = load(options, binary, server, "tpcc", "--warehouses", str(options.warehouses))
        runs = {server.name: [] for server in both}
        for seed in range(options.rounds):
            for server in both:
                runs[server.name].append(run(options, binary, server, seed, "tpcc", *pipelined))
        line = {name: summary(results, "new_orders_per_minute") for name, results in runs.items()}
        for server in both:
            line[server.name]["consistency"] = ask(binary, "check", "tpcc", "--url", server.url)
        compare(line, "new_orders_per_minute")
        tell("tpcc", line)
        result |= line
        broken = [server.name for server in both if not line[server.name]["consistency"]["consistent"]]
        assert not broken, f"inconsistent: {json.dumps({name: line[name]['consistency'] for name in broken})}"
    finally:
        for server in both:
            server.remove()
    return bars.judged(result, bars.missed(options, "tpcc", line, TPCC_BARS if is_as_measured(options) and not options.pipelined else {}))


def is_as_measured(options):
    """Whether the options are those that the bars are for."""
    return options.isolation == "read committed" and options.orientation == "row" and options.ycsb_indexes == 0


def ycsb(options, engines):
    """The core workloads, or those asked for, one after the other, each round by round in turn."""
    binary, both = client(), engines()
    result = {"rows": options.ycsb_rows, "indexes": options.ycsb_indexes, "clients": options.clients, "rounds": options.rounds}
    rows = ["ycsb", "--rows", str(options.ycsb_rows), "--indexes", str(options.ycsb_indexes)]
    missed = []
    try:
        for server in both:
            server.start()
        for workload in options.workloads or CORE_WORKLOADS:
            runs = {server.name: [] for server in both}
            for server in both:
                if workload == "E" or not result.get("load", {}).get(server.name):
                    result.setdefault("load", {})[server.name] = load(options, binary, server, *rows)
            for seed in range(options.rounds):
                for server in both:
                    runs[server.name].append(run(options, binary, server, seed, "ycsb", "--workload", workload))
            line = {name: summary(results, "per_s") for name, results in runs.items()}
            compare(line, "per_s")
            tell(workload, line)
            result[workload] = line
            missed += bars.missed(options, workload, line, YCSB_BARS if workload in CORE_WORKLOADS and is_as_measured(options) else {})
    finally:
        for server in both:
            server.remove()
    return bars.judged(result, missed)


def indexes(options, engines):
    """Updates of YCSB's table with secondary indexes on all of its fields, in turn with one that has none: Basalt alone."""
    binary, base = client(), os.path.join(options.base, "run")
    names = {"without": 0, "with": INDEXES}
    both = {name: servers.Basalt(os.path.join(base, name), options.port + at, unix=options.unix) for at, name in enumerate(names)}
    result = {"rows": options.ycsb_rows, "indexes": INDEXES, "clients": options.clients, "rounds": options.rounds, "load": {}}
    try:
        for name, server in both.items():
            server.remove()
            server.start()
            result["load"][name] = load(options, binary, server, "ycsb", "--rows", str(options.ycsb_rows), "--indexes", str(names[name]))
        runs = {name: [] for name in names}
        for seed in range(options.rounds):
            for name, server in both.items():
                runs[name].append(run(options, binary, server, seed, "ycsb", "--workload", "W"))
        result |= {name: summary(of_server, "per_s") for name, of_server in runs.items()}
        result["rate_share"] = round(result["with"]["per_s"] / result["without"]["per_s"], 2)
        tell("indexes", result)
    finally:
        for server in both.values():
            server.remove()
    return bars.judged(result, bars.missed(options, "indexes", result, INDEXES_BARS))


def query(server, path):
    """Seconds and a digest of the rows, or the error."""
    command = ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", server.url, "-f", str(path)]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, timeout=QUERY_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return QUERY_SECONDS_MAX, {"error": f"not done in {QUERY_SECONDS_MAX} s"}
    seconds = time.monotonic() - began
    if done.returncode != 0:
        return seconds, {"error": done.stderr.decode().strip()}
    return seconds, {"rows": done.stdout.count(b"\n"), "digest": hashlib.md5(done.stdout).hexdigest()}


def queries_alone(options, both):
    """Each query on both servers in turn over the population, where both must give the same rows."""
    result = {}
    for path in QUERIES:
        line, answers = {}, {}
        for _ in range(options.rounds):
            for server in both:
                seconds, answers[server.name] = query(server, path)
                line.setdefault(server.name, []).append(seconds)
        line = {name: round(statistics.median(values), 3) for name, values in line.items()}
        for name, answer in answers.items():
            if "error" in answer:
                line[f"{name}_error"] = answer["error"]
        if len(both) == 2:
            line["same"] = answers["basalt"] == answers["postgres"]
            line["time_ratio"] = round(line["basalt"] / line["postgres"], 2)
        print(path.stem, line, flush=True)
        result[path.stem] = line
    return result


def queries_beside(options, binary, server, seed, skipped):
    """One stream of queries while terminals run: what each leaves to the other."""
    wanted = [path for path in QUERIES if path.stem not in skipped]
    command = [binary, "run", "tpcc", "--url", server.url, "--seed", str(seed), *lengths(options)]
    began, done, failed = time.monotonic(), 0, {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as terminals:
        while terminals.poll() is None:
            path = wanted[done % len(wanted)]
            _, answer = query(server, path)
            if "error" in answer:
                failed[path.stem] = answer["error"]
            done += 1
        elapsed = time.monotonic() - began
        result = last_line(terminals.stdout.read(), command)
    return result | {"queries_per_hour": round(done / elapsed * 3600), "failed_queries": failed}


def ch(options, engines):
    """CH-benCHmark's 22 queries over TPC-C's tables: alone, and beside terminals."""
    binary, both = client(), engines()
    result = {"warehouses": options.warehouses, "rounds": options.rounds}
    try:
        for server in both:
            server.start()
            load(options, binary, server, "tpcc", "--warehouses", str(options.warehouses))
        result["alone"] = queries_alone(options, both)
        # Left out on both, so that both have the same to do.
        skipped = {name for name, line in result["alone"].items() if any(key.endswith("_error") for key in line)}
        result["beside"] = {"skipped": sorted(skipped)}
        runs = {server.name: [] for server in both}
        for seed in range(options.rounds):
            for server in both:
                runs[server.name].append(queries_beside(options, binary, server, seed, skipped))
        for server in both:
            line = summary(runs[server.name], "new_orders_per_minute")
            line["queries_per_hour"] = round(statistics.median(one["queries_per_hour"] for one in runs[server.name]))
            line["failed_queries"] = {name: error for one in runs[server.name] for name, error in one["failed_queries"].items()}
            line["consistency"] = ask(binary, "check", "tpcc", "--url", server.url)
            result["beside"][server.name] = line
        tell("beside terminals", result["beside"])
        different = [name for name, line in result["alone"].items() if not line.get("same", True)]
        assert not different, f"different rows or errors: {json.dumps({name: result['alone'][name] for name in different})}"
    finally:
        for server in both:
            server.remove()
    return result
