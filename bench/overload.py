"""Point reads beside floods of connections, half-open logins, heavy statements and readers that do not read: how many are
answered, and how soon. What makes the flood is a process of its own (this file, run as a program), which holds to a rate, so
that it takes the same part of the machine beside either server."""
import json
import os
import resource
import select
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

import beside

CLIENTS = 8
MAX_CONNECTIONS = 100
CONNECTIONS_PER_S = 300
HALF_OPEN = 1000
HEAVY_CLIENTS = 64
SLOW_READERS = 48
FLOODS = ("alone", "connections", "half-open", "statements", "slow-readers")
HEAVY = "SELECT k % 1000, count(*), sum(v) FROM facts WHERE v > 1000 GROUP BY 1 ORDER BY 2 DESC LIMIT 5"
ENDLESS = "SELECT a.t, b.t FROM facts a, facts b"


def overload(options, engines):
    """Each flood on both servers in turn, round by round."""
    seconds = 4 if options.quick else 20
    both = engines(basalt={"max_connections": MAX_CONNECTIONS}, postgres={"max_connections": MAX_CONNECTIONS})
    result = {"seconds": seconds, "rounds": options.rounds}
    try:
        for server in both:
            server.start()
            subprocess.run(["pgbench", "-q", "-i", "-s", str(1 if options.quick else 10), server.url], check=True, capture_output=True)
            beside.fill(server, 200_000 if options.quick else 1_000_000)
        for flood in FLOODS:
            runs = {server.name: [] for server in both}
            for _ in range(options.rounds):
                for server in both:
                    runs[server.name].append(one(options, server, flood, seconds))
            result[flood] = {name: medians(lines) for name, lines in runs.items()}
            print(flood, result[flood], flush=True)
        for server in both:
            for flood in FLOODS[1:]:
                kept = result[flood][server.name]["reads_per_s"] / result["alone"][server.name]["reads_per_s"]
                result[flood][server.name]["kept"] = round(kept, 2)
    finally:
        for server in both:
            server.remove()
    return result


def medians(lines):
    return {name: round(statistics.median(line[name] for line in lines), 3) for name in lines[0]}


def one(options, server, flood, seconds):
    """Reads that were answered in so many seconds of the flood, and what the flood met."""
    logs = os.path.join(options.base, "latencies")
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs)
    command = ["pgbench", "-n", "-S", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds + 6), "-l", "--log-prefix", os.path.join(logs, "log"), server.url]
    reads = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    flooding = subprocess.Popen([sys.executable, __file__, flood, server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert flooding.stdout.readline() == "ready\n", f"no flood of {flood}"
    time.sleep(1)
    began = time.time()
    time.sleep(seconds)
    ended = time.time()
    met = json.loads(flooding.communicate("end\n", timeout=120)[0])
    errors = reads.communicate()[1]
    assert reads.returncode == 0, errors
    took = sorted(latencies(logs, began, ended))
    shutil.rmtree(logs)
    at = lambda part: took[min(int(len(took) * part), len(took) - 1)] / 1000 if took else float("inf")
    return {"reads_per_s": len(took) / (ended - began), "p50_ms": at(0.5), "p99_ms": at(0.99), "p999_ms": at(0.999)} | met


def latencies(logs, began, ended):
    """Microseconds of each transaction that ended in between, of pgbench's logs."""
    for name in os.listdir(logs):
        with open(os.path.join(logs, name)) as file:
            for line in file:
                _, _, latency, _, second, micros = line.split()[:6]
                if began <= int(second) + int(micros) / 1e6 < ended:
                    yield int(latency)


class Client:
    """As much of the protocol as a flood needs."""

    def __init__(self, url):
        self.url = urllib.parse.urlparse(url)
        host = urllib.parse.unquote(self.url.netloc.rpartition("@")[2].rpartition(":")[0])
        if host.startswith("/"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(60)
            self.socket.connect(f"{host}/.s.PGSQL.{self.url.port}")
        else:
            self.socket = socket.create_connection((host, self.url.port), timeout=60)

    def log_in(self):
        """The SQLSTATE of the refusal, or None."""
        words = f"user\0{self.url.username}\0database\0{self.url.path[1:]}\0\0".encode()
        self.socket.sendall(struct.pack("!ii", len(words) + 8, 196608) + words)
        return self.ready()

    def ask(self, sql):
        body = sql.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)

    def ready(self):
        """Reads up to ReadyForQuery, or an error: its SQLSTATE."""
        while True:
            kind, length = struct.unpack("!ci", self.read(5))
            body = self.read(length - 4)
            if kind == b"Z":
                return None
            if kind == b"E":
                return next(field[1:].decode() for field in body.split(b"\0") if field[:1] == b"C")

    def read(self, count):
        got = b""
        while len(got) < count:
            more = self.socket.recv(count - len(got))
            if not more:
                raise ConnectionError("the server hung up")
            got += more
        return got


class Flood:
    """Begins with its first method; what it met is told at the end."""

    def __init__(self, url):
        # Connections that are kept are closed with the process.
        self.url, self.ends, self.threads, self.held = url, threading.Event(), [], []

    def spawn(self, work):
        self.threads.append(threading.Thread(target=work, daemon=True))
        self.threads[-1].start()

    def alone(self):
        return dict

    def connections(self):
        """All places but the readers' are taken; then connections come at a steady rate."""
        took = []
        while (client := Client(self.url)).log_in() is None:
            self.held.append(client)

        def come():
            while not self.ends.wait(4 / CONNECTIONS_PER_S):
                began = time.monotonic()
                refused = Client(self.url).log_in()
                took.append((time.monotonic() - began, refused))

        for _ in range(4):
            self.spawn(come)
        return lambda: {
            "refused_per_s": sum(refused == "53300" for _, refused in took) / self.lasted(),
            "refusal_p99_ms": percentile([time for time, refused in took if refused], 0.99) * 1000,
        }

    def half_open(self):
        """Connections that say nothing; for each that the server closes comes another."""
        met = {"opened": 0, "closed": 0}

        def come():
            silent = []
            while not self.ends.is_set():
                while len(silent) < HALF_OPEN // 4:
                    silent.append(Client(self.url).socket)
                    met["opened"] += 1
                    if self.ends.wait(4 / CONNECTIONS_PER_S):
                        return
                gone = self.spoken_to(silent)
                silent = [one for one in silent if one not in gone]
                met["closed"] += len(gone)

        for _ in range(4):
            self.spawn(come)
        return lambda: {name: count / self.lasted() for name, count in met.items()}

    def spoken_to(self, silent):
        poll = select.poll()
        by_number = {one.fileno(): one for one in silent}
        for number in by_number:
            poll.register(number, select.POLLIN)
        gone = {by_number[number] for number, _ in poll.poll(100)}
        for one in gone:
            one.close()
        return gone

    def statements(self):
        """Clients that aggregate without a pause."""
        took, refused = [], []

        def come():
            client = Client(self.url)
            if client.log_in():
                return
            while not self.ends.is_set():
                began = time.monotonic()
                client.ask(HEAVY)
                error = client.ready()
                if error:
                    refused.append(error)
                    # What it would have got is not there any more.
                    client.ready()
                    self.ends.wait(0.1)
                else:
                    took.append(time.monotonic() - began)

        for _ in range(HEAVY_CLIENTS):
            self.spawn(come)
        return lambda: {"heavy_per_s": len(took) / self.lasted(), "heavy_p99_ms": percentile(took, 0.99) * 1000, "refused": len(refused)}

    def slow_readers(self):
        """Rows without an end, and nobody takes them; one aggregate after the other beside them."""
        self.held = [Client(self.url) for _ in range(SLOW_READERS)]
        took = []
        for client in self.held:
            assert client.log_in() is None
            client.ask(ENDLESS)

        def come():
            client = Client(self.url)
            assert client.log_in() is None
            while not self.ends.is_set():
                began = time.monotonic()
                client.ask(HEAVY)
                assert client.ready() is None
                took.append(time.monotonic() - began)
                self.ends.wait(0.1)

        self.spawn(come)
        return lambda: {"slow_readers": len(self.held), "heavy_p99_ms": percentile(took, 0.99) * 1000}

    def lasted(self):
        return time.monotonic() - self.began

    def run(self, name):
        tell = getattr(self, name.replace("-", "_"))()
        self.began = time.monotonic()
        print("ready", flush=True)
        sys.stdin.readline()
        met = tell()
        self.ends.set()
        print(json.dumps(met), flush=True)
        # Threads may wait for a server that is overloaded.
        os._exit(0)


def percentile(values, part):
    values = sorted(values) or [0.0]
    return values[min(int(len(values) * part), len(values) - 1)]


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    Flood(sys.argv[2]).run(sys.argv[1])
