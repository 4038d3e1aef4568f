"""pgbench's runs: transactions per second, the server's CPU time per transaction, latencies of those that were sampled."""
import collections
import glob
import os
import re
import shutil
import statistics
import subprocess
import time

import servers as machine

# Of all transactions, how many are logged: writing each down would take the server's time.
SAMPLED = 0.05

# `latencies_us` ascends.
Run = collections.namedtuple("Run", "per_s cpu_us latencies_us")


def run(options, server, arguments, script=None, sampled=SAMPLED):
    """Of `script` (pgbench's language), or of the built-in one that `arguments` name."""
    logs = os.path.join(options.base, f"latencies-{server.port}")
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs)
    command = ["pgbench", "-n", *arguments]
    if script is not None:
        command += ["-f", written(options, "script", script)]
    command += ["-l", "--sampling-rate", str(sampled), "--log-prefix", os.path.join(logs, "log"), server.url]
    before = cpu_seconds(server)
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Backends that end are counted with their parent.
    time.sleep(0.3)
    used = cpu_seconds(server) - before
    count = int(re.search(r"actually processed: (\d+)", output)[1])
    failed = re.search(r"number of failed transactions: (\d+)", output)
    assert failed is None or failed[1] == "0", output
    latencies = sorted(read_latencies(logs))
    shutil.rmtree(logs)
    return Run(rate(output), used / count * 1e6, latencies)


def written(options, name, script):
    """A file for `-f`."""
    path = os.path.join(options.base, f"{name}.sql")
    with open(path, "w") as file:
        file.write(script)
    return path


def rate(output):
    return float(re.search(r"tps = ([\d.]+)", output)[1])


def quantile_ms(latencies_us, share):
    """0 where so few transactions ran that none was sampled."""
    return latencies_us[int((len(latencies_us) - 1) * share)] / 1000 if latencies_us else 0


def medians(runs):
    """Of several runs, each figure by itself."""
    return {
        "per_s": round(statistics.median(run.per_s for run in runs)),
        "cpu_us": round(statistics.median(run.cpu_us for run in runs), 1),
        "p99_ms": round(statistics.median(quantile_ms(run.latencies_us, 0.99) for run in runs), 3),
    }


def read_latencies(folder):
    """Microseconds, from the time at which each transaction was due (pgbench manual, "Per-Transaction Logging")."""
    for path in glob.glob(os.path.join(folder, "*")):
        with open(path) as file:
            for line in file:
                latency = line.split()[2]
                if latency not in ("skipped", "failed"):
                    yield int(latency)


def cpu_seconds(server):
    """User and system time of all processes that the server has and had."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    for pid, fields in machine.processes(server):
        # utime and stime; of the root, which waits for the others, cutime and cstime too.
        counted = fields[11:15] if pid == server.pid() else fields[11:13]
        total += sum(int(field) for field in counted)
    return total / ticks
