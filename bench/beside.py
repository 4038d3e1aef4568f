"""Statements beside others: groups with shares of the query threads, and point reads beside scans."""
import math
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import psycopg

import data

SHARES = {"small": 20, "large": 80}
CLIENTS = 4
SCAN_CLIENTS = 16
READS_PER_S = 2000
SCALE = 10
SCANS = """\
SELECT g, sum(v), count(*) FROM facts GROUP BY g;
SELECT k % 1000, count(*), sum(v) FROM facts WHERE v > 1000 GROUP BY 1 ORDER BY 2 DESC LIMIT 5;
SELECT count(*) FROM facts WHERE t LIKE '%77%';
SELECT id FROM facts ORDER BY k, v LIMIT 10;
"""


def fill(server, rows):
    data.psql(server.url, "CREATE TABLE facts (id bigint PRIMARY KEY, g int, k int, v double precision, t text)")
    data.psql(server.url, f"INSERT INTO facts SELECT i, i % 100, i::bigint * 7919 % 1000000, i * 0.5, 'text ' || i % 1000 FROM generate_series(1, {rows}) i")
    data.psql(server.url, "VACUUM FULL facts")


def basalt(options, engines, **settings):
    server = next((server for server in engines(basalt=settings) if server.name == "basalt"), None)
    if server is None:
        raise RuntimeError("this measures Basalt alone")
    return server


class Class:
    """Clients of one group that ask for aggregates without a pause, as long as they are let."""

    def __init__(self, server, group, column_engine):
        self.url = f"{server.url}?options=-c%20basalt.query_group%3D{group}%20-c%20basalt.enable_column_engine%3D{column_engine}"
        self.go, self.ends, self.failed = threading.Event(), False, []
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        queries = [query for query in SCANS.split(";") if query.strip()]
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                while not self.ends:
                    if self.go.wait(0.05):
                        for query in queries[:2]:
                            connection.execute(query).fetchall()
        except psycopg.Error as error:
            self.failed.append(str(error))

    def end(self):
        self.ends = True
        for thread in self.threads:
            thread.join()
        assert not self.failed, self.failed


def spent(connection):
    return dict(connection.execute("SELECT name, cpu_us FROM basalt.query_groups").fetchall())


def shares(options, engines):
    """Both classes, then one alone, then both again: what each group gets of the query threads' time. On the column engine, and where
    DataFusion's operators do the work."""
    server = basalt(options, engines, **{"basalt.query_groups": ", ".join(f"{name} = {share}" for name, share in SHARES.items())})
    result = {}
    try:
        server.start()
        fill(server, 500_000 if options.quick else 4_000_000)
        for name, column_engine in (("column engine", "on"), ("fallback", "off")):
            result[name], points = phases(server, column_engine, 2 if options.quick else 8)
            result[name]["plot"] = os.path.join(options.base, f"shares-{name.split()[0]}.svg")
            with open(result[name]["plot"], "w") as file:
                file.write(plot(points))
    finally:
        server.remove()
    return result


def phases(server, column_engine, seconds):
    result, points = {}, []
    classes = {name: Class(server, name, column_engine) for name in SHARES}
    with psycopg.connect(server.url, autocommit=True) as watch:
        began = time.monotonic()
        for phase, active in [("both", SHARES), ("small alone", {"small"}), ("both again", SHARES)]:
            for name, group in classes.items():
                (group.go.set if name in active else group.go.clear)()
            time.sleep(0.5)
            first = before = spent(watch)
            for _ in range(seconds * 4):
                time.sleep(0.25)
                now = spent(watch)
                points.append((time.monotonic() - began, {name: now[name] - before[name] for name in SHARES}))
                before = now
            total = sum(before[name] - first[name] for name in SHARES)
            result[phase] = {name: round(100 * (before[name] - first[name]) / total, 1) for name in SHARES}
            print("column engine" if column_engine == "on" else "fallback", phase, result[phase], flush=True)
    for group in classes.values():
        group.go.clear()
        group.end()
    return result, points


def plot(points):
    """Percent of the time of each quarter of a second, by group, as SVG."""
    width, height, left = 800, 300, 40
    end = points[-1][0]
    lines = []
    for (name, share), color in zip(SHARES.items(), ["#c33", "#36c"]):
        places = []
        for at, had in points:
            percent = 100 * had[name] / max(sum(had.values()), 1)
            places.append(f"{left + at / end * (width - left):.1f},{height - percent * height / 100:.1f}")
        lines.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{" ".join(places)}"/>')
        lines.append(f'<text x="{left + 5}" y="{height - share * height / 100 - 5:.0f}" fill="{color}">{name}, share {share}</text>')
    marks = "".join(f'<text x="0" y="{height - percent * height / 100 + 12:.0f}">{percent} %</text><path d="M{left} {height - percent * height / 100}H{width}" stroke="#ddd"/>' for percent in (0, 20, 80, 100))
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -5 {width} {height + 30}" font-family="sans-serif" font-size="12">{marks}{"".join(lines)}<text x="{left}" y="{height + 20}">processor time of each group, {end:.0f} seconds</text></svg>\n'


def waited(pid):
    """How long the server's reactors stood ready without a processor, in seconds, and how often they were given one."""
    total, times = 0, 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm") as file:
                if not file.read().startswith("basalt-reactor"):
                    continue
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                _, waited_ns, slices = map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
        total, times = total + waited_ns, times + slices
    return total / 1e9, times


TRACED = re.compile(r"([\d.]+):.* src=\S+:(\d+) dest=\S+:(\d+) ")


def ports_of_clients(port):
    with open("/proc/net/tcp") as file:
        ends = [line.split()[1:3] for line in file.readlines()[1:]]
    return {int(here.split(":")[1], 16) for here, there in ends if int(there.split(":")[1], 16) == port}


class Packets:
    """When bytes of clients that come from now on reach a socket, as the kernel tells (`tcp:tcp_probe`; needs perf and root): a request makes
    the server's socket readable at that moment, and the last of its answer has been written when it reaches the client's."""

    def __init__(self, server, base):
        self.port, self.file = server.port, os.path.join(base, "packets.perf")
        self.others = ports_of_clients(self.port)
        command = ["perf", "record", "-q", "-a", "-m", "4M", "-e", "tcp:tcp_probe", "--filter", "data_len > 0", "-o", self.file]
        try:
            self.perf = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
        except FileNotFoundError:
            self.perf = None

    def end(self):
        """Microseconds of each answer; None where the kernel does not tell."""
        if self.perf is None or self.perf.poll() is not None:
            return None
        self.perf.send_signal(signal.SIGINT)
        self.perf.wait()
        script = subprocess.run(["perf", "script", "-i", self.file, "-F", "time,trace"], capture_output=True, text=True).stdout
        os.remove(self.file)
        asked, answered, took = {}, {}, []
        for line in script.splitlines():
            found = TRACED.search(line)
            if not found:
                continue
            at, here, there = float(found[1]), int(found[2]), int(found[3])
            if here in self.others or there in self.others:
                continue
            if here == self.port:
                if there in answered:
                    took.append((answered.pop(there) - asked.pop(there)) * 1e6)
                asked.setdefault(there, at)
            elif there == self.port and here in asked:
                answered[here] = at
        return sorted(took)


def reads(options, server, scanners, seconds):
    """Point reads that are due at a steady rate, beside clients that scan."""
    logs = os.path.join(options.base, "latencies")
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs)
    script = os.path.join(options.base, "scans.sql")
    with open(script, "w") as file:
        file.write(SCANS)
    beside = None
    if scanners:
        beside = subprocess.Popen(["pgbench", "-n", "-c", str(scanners), "-f", script, "-T", str(seconds + 2), server.url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(1)
    packets = Packets(server, options.base)
    before = waited(server.pid())
    command = ["pgbench", "-n", "-S", "-M", "prepared", "-c", "4", "-R", str(READS_PER_S), "-T", str(seconds), "-l", "--log-prefix", os.path.join(logs, "log"), server.url]
    subprocess.run(command, check=True, capture_output=True)
    after = waited(server.pid())
    in_server = packets.end()
    # Of each: client, number, latency since it was due, script, seconds, microseconds, how late it was sent.
    sent = []
    for name in os.listdir(logs):
        with open(os.path.join(logs, name)) as file:
            sent += [int(line.split()[2]) - int(line.split()[6]) for line in file]
    sent.sort()
    shutil.rmtree(logs)
    at = lambda part: round(sent[min(int(len(sent) * part), len(sent) - 1)] / 1000, 3)
    line = {"reads": len(sent), "p50_ms": at(0.5), "p99_ms": at(0.99), "p999_ms": at(0.999)}
    if in_server:
        line["in_server_p50_us"], line["in_server_p99_us"] = (round(in_server[int(len(in_server) * part)], 1) for part in (0.5, 0.99))
    line["reactor_wait_us"] = round((after[0] - before[0]) / max(after[1] - before[1], 1) * 1e6, 1)
    if beside:
        output = beside.communicate()[0]
        line["scans_per_s"] = round(float(re.search(r"tps = ([\d.]+)", output)[1]) * SCANS.count(";"), 1)
    return line, sent, in_server


def serving(options, engines):
    """Point reads alone and beside scans, in turn."""
    seconds = 3 if options.quick else 10
    server = basalt(options, engines)
    result, sent, in_server = ({"alone": [], "beside scans": []} for _ in range(3))
    try:
        server.start()
        subprocess.run(["pgbench", "-q", "-i", "-s", str(1 if options.quick else SCALE), server.url], check=True, capture_output=True)
        fill(server, 500_000 if options.quick else 4_000_000)
        reads(options, server, 0, 2)
        for _ in range(options.rounds):
            for name, scanners in (("alone", 0), ("beside scans", SCAN_CLIENTS)):
                line, as_sent, as_served = reads(options, server, scanners, seconds)
                result[name].append(line)
                sent[name] += as_sent
                in_server[name].append(as_served)
                print(name, result[name][-1], flush=True)
    finally:
        server.remove()
    result["plot"] = os.path.join(options.base, "serving-beside-scans.svg")
    told = all(served for rounds in in_server.values() for served in rounds)
    latencies = {name: [took for served in rounds for took in served] for name, rounds in in_server.items()} if told else sent
    with open(result["plot"], "w") as file:
        file.write(distributions({f"{name}, {'in the server' if told else 'since they were sent'}": values for name, values in latencies.items()}))
    return result


def distributions(latencies):
    """Microseconds below which so many of a hundred reads stay, as SVG; the further right, the fewer are above."""
    width, height, left, bottom = 800, 300, 60, 20
    nines = 4
    place = lambda part: left + -math.log10(max(1 - part, 10**-nines)) / nines * (width - left)
    least = min(min(values) for values in latencies.values())
    most = max(max(values) for values in latencies.values())
    low, high = math.floor(math.log10(max(least, 1))), math.ceil(math.log10(max(most, 10)))
    level = lambda value: height - (math.log10(max(value, 1)) - low) / max(high - low, 1) * height
    marks = [f'<text x="0" y="{level(10**power) + 4:.0f}">{10**power / 1000:g} ms</text><path d="M{left} {level(10**power):.0f}H{width}" stroke="#ddd"/>' for power in range(low, high + 1)]
    marks += [f'<text x="{place(part) - 10:.0f}" y="{height + bottom}">{100 * part:g} %</text><path d="M{place(part):.0f} 0V{height}" stroke="#ddd"/>' for part in (0.5, 0.9, 0.99, 0.999)]
    lines = []
    for row, ((name, values), color) in enumerate(zip(latencies.items(), ["#36c", "#c33"])):
        values = sorted(values)
        parts = [1 - 10 ** (-nines * step / 400) for step in range(401)]
        points = " ".join(f"{place(part):.1f},{level(values[min(int(len(values) * part), len(values) - 1)]):.1f}" for part in parts)
        lines.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{points}"/><text x="{left + 10}" y="{16 + 16 * row}" fill="{color}">{name}: {len(values)} reads</text>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -10 {width + 40} {height + bottom + 20}" font-family="sans-serif" font-size="12">{"".join(marks)}{"".join(lines)}</svg>\n'
