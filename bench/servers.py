"""Basalt and PostgreSQL 15 as scratch servers, with the same durability: each commit is synced before its reply."""
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse

PG_BIN = os.environ.get("PG_BIN", "/usr/lib/postgresql/15/bin")
BASALT_BIN = os.environ.get("BENCH_BASALT", os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin/basalt"))

PG_SETTINGS = {
    "shared_buffers": "4GB",
    "max_wal_size": "8GB",
    "effective_cache_size": "12GB",
    "work_mem": "128MB",
    "maintenance_work_mem": "1GB",
    "max_connections": "300",
}


def host(folder):
    """For a URL: this machine over TCP, or the Unix socket in `folder`."""
    return "127.0.0.1" if folder is None else urllib.parse.quote(folder, safe="")


class Basalt:
    name = "basalt"

    def __init__(self, base, port, settings=None, unix=False):
        self.dir = os.path.join(base, "basalt")
        self.port = port
        self.settings = settings or {}
        # It has to be there before the server is.
        self.socket = base if unix else None
        self.url = f"postgresql://basalt@{host(self.socket)}:{port}/basalt"
        self.process = None

    def start(self):
        """Starts it and returns how long it took until it was ready, in seconds."""
        command = [BASALT_BIN, "start", "--data-dir", self.dir, "--listen", f"127.0.0.1:{self.port}", "--http", "off"]
        if self.socket is not None:
            command += ["--socket", self.socket]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        os.makedirs(os.path.dirname(self.dir), exist_ok=True)
        began = time.monotonic()
        with open(self.dir + ".log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        for line in self.process.stdout:
            if "is ready" in line:
                took = time.monotonic() - began
                # Nobody reads on: what it says later must not fill the pipe.
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return took
        raise RuntimeError(f"basalt did not start: see {self.dir}.log")

    def pid(self):
        return self.process.pid

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=300)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def log_bytes(self, connection):
        """Log that a crash now would replay."""
        rows = connection.execute("SELECT name, value FROM basalt.counters WHERE name IN ('log_end', 'checkpoint_lsn')")
        counters = dict(rows.fetchall())
        return int(counters["log_end"]) - int(counters["checkpoint_lsn"])


class Postgres:
    name = "postgres"

    def __init__(self, base, port, settings=None, unix=False):
        self.dir = os.path.join(base, "postgres")
        self.port = port
        self.settings = PG_SETTINGS | (settings or {})
        self.url = f"postgresql://postgres@{host(self.dir if unix else None)}:{port}/postgres"

    def _run(self, *command):
        """PostgreSQL refuses to run as root."""
        user = "postgres" if os.geteuid() == 0 else None
        subprocess.run(command, check=True, user=user, stdout=subprocess.DEVNULL, cwd="/")

    def _init(self):
        os.makedirs(self.dir)
        if os.geteuid() == 0:
            os.chown(self.dir, pwd.getpwnam("postgres").pw_uid, -1)
        self._run(f"{PG_BIN}/initdb", "-D", f"{self.dir}/data", "-A", "trust", "-U", "postgres")
        settings = self.settings | {"port": self.port, "unix_socket_directories": self.dir}
        with open(f"{self.dir}/data/postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def start(self):
        if not os.path.exists(self.dir):
            self._init()
        began = time.monotonic()
        self._run(f"{PG_BIN}/pg_ctl", "-D", f"{self.dir}/data", "-l", f"{self.dir}/log", "-t", "3600", "-w", "start")
        return time.monotonic() - began

    def pid(self):
        with open(f"{self.dir}/data/postmaster.pid") as file:
            return int(file.readline())

    def stop(self):
        self._run(f"{PG_BIN}/pg_ctl", "-D", f"{self.dir}/data", "-m", "fast", "-t", "3600", "-w", "stop")

    def kill(self):
        self._run(f"{PG_BIN}/pg_ctl", "-D", f"{self.dir}/data", "-m", "immediate", "-w", "stop")

    def remove(self):
        if os.path.exists(f"{self.dir}/data/postmaster.pid"):
            self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def log_bytes(self, connection):
        sql = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn)::bigint FROM pg_control_checkpoint()"
        return connection.execute(sql).fetchone()[0]


def folder_bytes(path):
    """What its files occupy, as `du` counts."""
    total = 0
    for folder, _, files in os.walk(path):
        for file in files:
            try:
                total += os.lstat(os.path.join(folder, file)).st_blocks * 512
            except FileNotFoundError:
                # Collected meanwhile.
                pass
    return total


def processes(server):
    """The server's process and its children: of each the number, and what /proc/PID/stat holds from the state on."""
    root = server.pid()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            # It has ended meanwhile.
            continue
        if root in (int(entry), int(fields[1])):
            yield int(entry), fields


@contextlib.contextmanager
def paused(server):
    """No process of the server runs meanwhile; what it has put off, it does afterwards."""
    stopped = []
    try:
        for pid, _ in processes(server):
            # One may have ended meanwhile.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
        yield
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def memory_bytes(pid, field="VmRSS"):
    """Of one process, as the kernel counts; VmHWM is its peak."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/{pid}/status has no {field}")
