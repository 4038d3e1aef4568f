"""TPC-C on the engine alone, updates in place and out of place: no server takes part. The program is in engine/."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess

import oltp

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODES = ["in-place", "in-place-by-row-id", "out-of-place"]
FIGURES = ["per_s", "new_orders_per_minute", "cpu_us", "log_bytes", "hot_bytes", "resident_bytes", "load_s"]
# How much faster the mix has to be with updates in place.
RATIO_MIN = 2


def program():
    """The program: BENCH_ENGINE, or built here. With the server, so that libraries are compiled as for it."""
    if "BENCH_ENGINE" in os.environ:
        return os.environ["BENCH_ENGINE"]
    environment = oltp.build_environment()
    command = ["cargo", "build", "-q", "--release", "-p", "basalt", "-p", "basalt-bench-engine"]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return os.path.join(environment["CARGO_TARGET_DIR"], "release/basalt-bench-engine")


def once(options, binary, mode, seed):
    """One run on fresh data."""
    directory = os.path.join(os.environ.get("BENCH_ENGINE_DIR", os.path.join(options.base, "run")), "engine-tpcc")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    seconds, warmup = (5, 1) if options.quick else (options.engine_seconds, 5)
    command = [binary, "--dir", directory, "--mode", mode, "--warehouses", str(options.warehouses), "--terminals", str(options.clients)]
    command += ["--seconds", str(seconds), "--warmup", str(warmup), "--seed", str(seed)]
    try:
        return oltp.last_line(subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout, command)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def in_turn(options, engines):
    """All modes, round by round in turn; `failed` where in place is not fast enough or a condition is broken."""
    binary = program()
    runs = {mode: [] for mode in MODES}
    for seed in range(options.rounds):
        for mode in MODES:
            runs[mode].append(once(options, binary, mode, seed))
    result = {"warehouses": options.warehouses, "terminals": options.clients, "rounds": options.rounds}
    for mode, results in runs.items():
        line = {name: round(statistics.median(run[name] for run in results), 1) for name in FIGURES}
        line["retries"] = sum(run["retries"] for run in results)
        line["consistent"] = all(run["consistent"] for run in results)
        print(mode, line, flush=True)
        result[mode] = line
    rate = {mode: result[mode]["per_s"] for mode in MODES}
    result["ratio"] = round(rate["in-place"] / rate["out-of-place"], 2)
    result["ratio_by_row_id"] = round(rate["in-place-by-row-id"] / rate["out-of-place"], 2)
    result["cpu_ratio"] = round(result["out-of-place"]["cpu_us"] / result["in-place"]["cpu_us"], 2)
    print(json.dumps({name: result[name] for name in ["ratio", "ratio_by_row_id", "cpu_ratio"]}), flush=True)
    failed = [f"{mode} is inconsistent" for mode in MODES if not result[mode]["consistent"]]
    if result["ratio"] < RATIO_MIN:
        failed.append(f"in place is {result['ratio']} times as fast as out of place, not {RATIO_MIN}")
    return result | ({"failed": failed} if failed else {})
