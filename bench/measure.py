#!/usr/bin/env python3
"""Measures Basalt beside PostgreSQL 15 (and DuckDB for size): see README.md. Run by run.sh."""
import argparse
import json
import os
import platform
import subprocess
import sys
import time

import beside
import bitmaps
import cold
import crash
import disk
import encodings_of_segments
import engine_tpcc
import first_runs
import inserts
import load
import memory
import mixed
import oltp
import overload
import planning
import servers
import serving
import size
import snapshot
import suites

MEASUREMENTS = {
    "load": load.copy_rows,
    "inserts": inserts.durable,
    "paced": inserts.paced,
    "snapshot": snapshot.held,
    "size": size.on_disk,
    "encodings": encodings_of_segments.decoded,
    "recovery": crash.recovery,
    "memory": memory.while_loading,
    "memory-limit": memory.while_answering,
    "memory-beside-peers": memory.beside_peers,
    "serving": serving.shapes,
    "cold": cold.gets,
    "shares": beside.shares,
    "serving-beside-scans": beside.serving,
    "overload": overload.overload,
    "from-disk": disk.scans,
    "bitmaps": bitmaps.beside_none,
    "tpcc": oltp.tpcc,
    "engine-tpcc": engine_tpcc.in_turn,
    "ycsb": oltp.ycsb,
    "indexes": oltp.indexes,
    "ch": oltp.ch,
    "mixed": mixed.in_turn,
    "planning": planning.first_seen,
    "first-runs": first_runs.in_turn,
} | suites.ALL
DEFAULT = ["load", "inserts", "paced", "size", "recovery", "shares", "serving-beside-scans"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measurements", nargs="*", metavar="MEASUREMENT", help=f"of {', '.join(MEASUREMENTS)} [default: {', '.join(DEFAULT)}]")
    parser.add_argument("--quick", action="store_true", help="smaller data, fewer rounds, one paced minute: to see that all of it runs")
    parser.add_argument("--rounds", type=int, help="rounds of load, inserts, engine-tpcc, tpch, mixed, first-runs and the suites [default: 5; quick: 3]")
    parser.add_argument("--rows", type=int, help="rows of a suite's largest table [default: each suite's own, 1 to 4 million; quick: fewer]")
    parser.add_argument("--peers", nargs="*", choices=suites.PEERS, default=["duckdb", "hyper"], help="of the suites [default: duckdb, and hyper where it is installed]")
    parser.add_argument("--insert-clients", type=int, default=16, help="of inserts and paced [default: 16]")
    parser.add_argument("--paced-seconds", type=int, help="length of paced, and of all rounds with a snapshot [default: 600; quick: 60]")
    parser.add_argument("--scale-factor", type=float, help="of TPC-H for size, tpch, mixed, first-runs and memory-beside-peers [default: 1; quick: 0.1]")
    parser.add_argument("--memory-scale-factor", type=float, default=10, help="of TPC-H for memory and memory-limit [default: 10]")
    parser.add_argument("--log-mb", type=int, help="log to recover from [default: 1000; quick: 100]")
    parser.add_argument("--serving-seconds", type=int, default=60, help="length of one run of serving and cold [default: 60]")
    parser.add_argument("--cold-rows", type=int, help="of cold's table [default: 50000000; quick: 1000000]")
    parser.add_argument("--hot-rows", type=int, help="of the one beside it that stays in memory [default: as many as --cold-rows]")
    parser.add_argument("--shapes", nargs="*", help="parts of the names of serving's shapes [default: all]")
    parser.add_argument("--oltp-seconds", type=int, default=60, help="length of one run of tpcc, ycsb, indexes and ch [default: 60; quick: 5]")
    parser.add_argument("--clients", type=int, default=16, help="of tpcc, engine-tpcc, ycsb, indexes and ch [default: 16]")
    parser.add_argument("--engine-seconds", type=int, default=30, help="length of one run of engine-tpcc [default: 30; quick: 5]")
    parser.add_argument("--isolation", default="read committed", help="of tpcc, ycsb, indexes and ch [default: read committed]")
    parser.add_argument("--warehouses", type=int, help="of tpcc, engine-tpcc and ch [default: 10; quick: 2]")
    parser.add_argument("--pipelined", action="store_true", help="tpcc's terminals send together what waits for no answer [default: statement by statement]")
    parser.add_argument("--orientation", default="row", help="of Basalt's tables in tpcc, ycsb, indexes and ch [default: row]")
    parser.add_argument("--ycsb-rows", type=int, help="[default: 1000000; quick: 100000]")
    parser.add_argument("--ycsb-indexes", type=int, default=0, help="secondary indexes on its fields [default: 0]")
    parser.add_argument("--workloads", nargs="*", choices=oltp.WORKLOADS, help="of ycsb; W is updates alone [default: A to F]")
    parser.add_argument("--port", type=int, default=56400, help="first of two ports for the servers [default: 56400]")
    parser.add_argument("--unix", action="store_true", help="clients come over a Unix socket [default: TCP over the loopback]")
    parser.add_argument("--only", choices=["basalt", "postgres"], help="measure one of the two")
    options = parser.parse_args()
    defaults = {"rounds": (5, 3), "paced_seconds": (600, 60), "scale_factor": (1, 0.1), "log_mb": (1000, 100), "warehouses": (10, 2), "ycsb_rows": (1_000_000, 100_000), "cold_rows": (50_000_000, 1_000_000)}
    for name, (full, quick) in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else full)
    for name in options.measurements:
        if name not in MEASUREMENTS:
            parser.error(f"no measurement {name}: there are {', '.join(MEASUREMENTS)}")
    if options.unix and "serving-beside-scans" in (options.measurements or DEFAULT):
        parser.error("serving-beside-scans looks at packets: leave out --unix, or name other measurements")
    options.base = os.environ["BENCH_DIR"]
    return options


def engines(options, **settings):
    """Fresh servers, not started: settings by the engine's name."""
    base = os.path.join(options.base, "run")
    os.makedirs(base, exist_ok=True)
    both = [
        servers.Basalt(base, options.port, settings.get("basalt"), options.unix),
        servers.Postgres(base, options.port + 1, settings.get("postgres"), options.unix),
    ]
    for engine in both:
        engine.remove()
    return [engine for engine in both if options.only in (None, engine.name)]


def machine():
    with open("/proc/meminfo") as file:
        memory_kb = int(file.readline().split()[1])
    version = lambda *command: subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory_kb / 1e6, 1),
        "kernel": platform.release(),
        "basalt": version(servers.BASALT_BIN, "--version"),
        "postgres": version(f"{servers.PG_BIN}/postgres", "--version"),
        "load_average": os.getloadavg()[0],
    }


def main():
    options = arguments()
    if not os.access(servers.BASALT_BIN, os.X_OK):
        sys.exit(f"{servers.BASALT_BIN} is not there: make build, or set BENCH_BASALT")
    results = {"machine": machine(), "options": vars(options)}
    print(json.dumps(results["machine"]))
    failed = False
    for name in options.measurements or DEFAULT:
        print(f"\n== {name}", flush=True)
        try:
            results[name] = MEASUREMENTS[name](options, lambda **settings: engines(options, **settings))
            failed = failed or bool(results[name].get("failed"))
        except (subprocess.CalledProcessError, AssertionError, OSError, RuntimeError, load.psycopg.Error) as error:
            results[name] = {"failed": str(error)}
            failed = True
        print(json.dumps(results[name], indent=2), flush=True)
    path = os.path.join(options.base, time.strftime("results-%Y%m%d-%H%M%S.json"))
    with open(path, "w") as file:
        json.dump(results, file, indent=2)
    print(f"\nwritten to {path}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
