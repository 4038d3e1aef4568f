"""Memory of the server: while it loads more than it may hold, while it answers within a limit, and beside the peers'."""
import functools
import multiprocessing
import os
import shutil
import threading

import data
import psycopg
import servers as machine
import tpch
from suites import peers

# While it loads (basalt.memory_limit).
LIMIT = "2GB"
SAMPLE_SECONDS = 1
# While it answers; and the bar for what it takes then.
ANSWERING_LIMIT = "1GB"
ANSWERING_BAR = 1500 * 1000 * 1000
# Of the larger peer's peak.
PEERS_BAR = 1.5
ROUNDS = 2


def while_loading(options, engines):
    result = {"scale_factor": options.memory_scale_factor, "limit": LIMIT}
    for server in engines(basalt={"basalt.memory_limit": LIMIT}):
        if server.name != "basalt":
            continue
        try:
            server.start()
            samples, done = [], threading.Event()

            def sample():
                while not done.wait(SAMPLE_SECONDS):
                    samples.append(machine.memory_bytes(server.pid()))

            sampler = threading.Thread(target=sample)
            sampler.start()
            try:
                data.load_tpch(server.url, options.memory_scale_factor)
            finally:
                done.set()
                sampler.join()
            samples.sort()
            result |= {
                "median_rss_bytes": samples[len(samples) // 2],
                "peak_rss_bytes": machine.memory_bytes(server.pid(), "VmHWM"),
                "loading_s": len(samples) * SAMPLE_SECONDS,
            }
        finally:
            server.remove()
    return result


def while_answering(options, engines):
    """TPC-H within a limit that its tables do not fit in: every query must end, and memory stay within the bar."""
    server = next(server for server in engines(basalt={"basalt.memory_limit": ANSWERING_LIMIT}) if server.name == "basalt")
    try:
        peak = basalt_peak(server, options.memory_scale_factor)
    finally:
        server.remove()
    result = {"scale_factor": options.memory_scale_factor, "limit": ANSWERING_LIMIT, "peak_rss_bytes": peak, "bar_bytes": ANSWERING_BAR}
    return result | ({"failed": "a bar was missed"} if peak > ANSWERING_BAR else {})


def beside_peers(options, engines):
    """Peaks of processes that were started for TPC-H's queries alone, over tables that others loaded."""
    server = next(server for server in engines() if server.name == "basalt")
    folder = os.path.join(options.base, "peaks")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    peaks = {}
    try:
        for name, (load, answer) in PEERS.items():
            if name in options.peers and (name != "hyper" or peers.tableauhyperapi):
                alone(load, folder, options.scale_factor)
                peaks[name] = alone(answer, folder)
        peaks["basalt"] = basalt_peak(server, options.scale_factor)
    finally:
        server.remove()
        shutil.rmtree(folder, ignore_errors=True)
    result = {"scale_factor": options.scale_factor, "peak_rss_bytes": peaks, "bar": PEERS_BAR}
    result["ratio"] = round(peaks["basalt"] / max(peak for name, peak in peaks.items() if name != "basalt"), 2)
    return result | ({"failed": "a bar was missed"} if result["ratio"] > PEERS_BAR else {})


def basalt_peak(server, scale_factor):
    server.start()
    data.load_tpch(server.url, scale_factor)
    for statement in ("VACUUM ANALYZE", "CHECKPOINT"):
        data.psql(server.url, statement)
    server.stop()
    server.start()
    with psycopg.connect(server.url, autocommit=True) as connection:
        answered(lambda text: connection.execute(text).fetchall())
    return machine.memory_bytes(server.pid(), "VmHWM")


def answered(ask):
    for _ in range(ROUNDS):
        for text in tpch.queries().values():
            ask(text)


def alone(work, *arguments):
    """In a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(work, arguments)


def load_duckdb(folder, scale_factor):
    tpch.load_duckdb(folder, scale_factor).close()


def duckdb_peak(folder):
    connection = tpch.duckdb.connect(os.path.join(folder, "tpch.db"), read_only=True)
    connection.execute(f"SET threads = {tpch.THREADS}")
    answered(lambda text: connection.execute(text).fetchall())
    return machine.memory_bytes(os.getpid(), "VmHWM")


def with_hyper(work):
    @functools.wraps(work)
    def run(folder, *arguments):
        api = peers.tableauhyperapi
        parameters = {"log_config": "", "hard_concurrent_query_thread_limit": str(peers.THREADS)}
        with api.HyperProcess(telemetry=api.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=parameters) as process:
            path = os.path.join(folder, "tpch.hyper")
            with api.Connection(process.endpoint, path, api.CreateMode.CREATE_IF_NOT_EXISTS) as connection:
                return work(connection, folder, *arguments)

    return run


@with_hyper
def load_hyper(connection, folder, scale_factor):
    """From DuckDB's tables, which are there before."""
    source = tpch.duckdb.connect(os.path.join(folder, "tpch.db"), read_only=True)
    for table in data.TABLES:
        csv = os.path.join(folder, f"{table}.csv")
        source.execute(f"COPY {table} TO '{csv}' (FORMAT csv, HEADER false)")
        connection.execute_command(f"CREATE TABLE {table} ({data.DDL[table].split(', PRIMARY KEY')[0].replace('PRIMARY KEY', 'NOT NULL')})")
        connection.execute_command(f"COPY {table} FROM '{csv}' WITH (FORMAT csv, NULL '', DELIMITER ',')")
        os.remove(csv)


@with_hyper
def hyper_peak(connection, folder):
    answered(connection.execute_list_query)
    return machine.memory_bytes(child_of(os.getpid()), "VmHWM")


def child_of(parent):
    """The server that the API started, of which it tells no process number."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/status") as file:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(status["PPid"]) == parent and status["Name"].startswith("hyper"):
            return int(entry)
    raise RuntimeError("hyper's server is not there")


PEERS = {"duckdb": (load_duckdb, duckdb_peak), "hyper": (load_hyper, hyper_peak)}
