"""The engines that suites are run on, each with two threads, and who makes their rows."""
import os
import subprocess

import duckdb
import psycopg

try:
    import tableauhyperapi
except ImportError:
    tableauhyperapi = None

THREADS = 2
SECONDS_MAX = 120
FAILURES = (psycopg.Error, duckdb.Error) + ((tableauhyperapi.HyperException,) if tableauhyperapi else ())


def available(names, tables):
    """Of the peers asked for, those that are installed and hold the tables: Hyper stores neither arrays nor JSON."""
    nested = any(is_nested(column) for table in tables for column in table.columns)
    return [name for name in names if name != "hyper" or (tableauhyperapi and not nested)]


def is_nested(column):
    return is_array(column) or column.type == "jsonb"


def is_array(column):
    return column.type.endswith("[]")


def ddl(table, types=None):
    types = types or {}
    column = lambda column: f"{column.name} {types.get(column.type, column.type)}{'' if column.nullable else ' NOT NULL'}"
    return f"CREATE TABLE {table.name} ({', '.join(map(column, table.columns))}"


class Maker:
    """Writes the rows of tables as CSV: DuckDB's `hash` (its version is fixed in run.sh) of row number, column and seed."""

    def __init__(self, folder, seed, syllables):
        self.folder = folder
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {THREADS}")
        for macro in (
            f"pick(i, salt, n) AS (hash(i, salt, {seed}) % n::UBIGINT)::BIGINT",
            f"unit(i, salt) AS (hash(i, salt, {seed}) >> 11)::DOUBLE * 1.1102230246251565e-16",
            "zipf(i, salt, n) AS floor(power(n, unit(i, salt)))::BIGINT",
            f"syllable(k) AS {syllables}[k % 20 + 1]",
            "word(k) AS syllable(k) || syllable(k // 20) || syllable(k // 400)",
        ):
            self.connection.execute(f"CREATE MACRO {macro}")

    def csv(self, table, rows):
        columns = ", ".join(f"({column.rows.replace('$rows', str(rows))})::{made(column.type)} AS {column.name}" for column in table.columns)
        written = ", ".join(f"{as_text(column)} AS {column.name}" for column in table.columns)
        path = os.path.join(self.folder, f"{table.name}.csv")
        rows = f"SELECT {columns} FROM range(1, {rows + 1}) AS numbers(i)"
        self.connection.execute(f"COPY (SELECT {written} FROM ({rows})) TO '{path}' (FORMAT csv, HEADER false)")
        return path

    def close(self):
        self.connection.close()


def made(type):
    return "JSON" if type == "jsonb" else type


def as_text(column):
    """Arrays as PostgreSQL writes them. Their texts have nothing that is quoted."""
    return f"'{{' || array_to_string({column.name}, ',') || '}}'" if is_array(column) else column.name


class Served:
    """A server that speaks PostgreSQL's protocol."""

    def __init__(self, server):
        self.server = server
        server.start()
        self.connection = None
        self.revive()

    def revive(self):
        """After a failure: a new connection, and a new server if the old one is gone."""
        if self.connection:
            self.connection.close()
        if self.server.name == "basalt" and self.server.process.poll() is not None:
            self.server.start()
        self.connection = psycopg.connect(self.server.url, autocommit=True)
        self.connection.execute(f"SET statement_timeout = '{SECONDS_MAX}s'")

    def load(self, table, csv):
        self.connection.execute(f"{ddl(table)}, PRIMARY KEY ({table.key}))")
        command = f"\\copy {table.name} from '{csv}' csv"
        subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", self.server.url, "-c", command], check=True)

    def settle(self):
        subprocess.run(["psql", "-X", "-q", self.server.url, "-c", "VACUUM ANALYZE"], check=True)

    def ask(self, text):
        return self.connection.execute(text).fetchall()

    def close(self):
        self.connection.close()
        self.server.remove()


class Basalt(Served):
    def engine(self, text):
        """Which of its engines takes a statement: where a part runs on the fallback, that."""
        lines = [line for (line,) in self.ask(f"EXPLAIN {text}")]
        return "fallback" if any("Fallback" in line for line in lines) else lines[0].split()[0].lower()


class Postgres(Served):
    """For meaning, not for speed: what it answers is right."""

    def __init__(self, _folder, servers):
        super().__init__(servers["postgres"])


class DuckDb:
    def __init__(self, folder, _servers):
        self.connection = duckdb.connect(os.path.join(folder, "duckdb.db"))
        self.connection.execute(f"SET threads = {THREADS}")
        # As in PostgreSQL.
        self.connection.execute("SET integer_division = true")

    def load(self, table, csv):
        self.connection.execute(ddl(table, {"jsonb": "JSON"}) + ")")
        columns = ", ".join(f"'{column.name}': '{'VARCHAR' if is_array(column) else made(column.type)}'" for column in table.columns)
        taken = ", ".join(f"('[' || {column.name}[2:-2] || ']')::{column.type}" if is_array(column) else column.name for column in table.columns)
        read = f"read_csv('{csv}', header = false, columns = {{{columns}}}, delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false)"
        self.connection.execute(f"INSERT INTO {table.name} SELECT {taken} FROM {read}")

    def settle(self):
        self.connection.execute("CHECKPOINT")

    def ask(self, text):
        return self.connection.execute(text).fetchall()

    def close(self):
        self.connection.close()


class Hyper:
    """Tableau's engine, where its API is installed."""

    def __init__(self, folder, _servers):
        parameters = {"log_config": "", "hard_concurrent_query_thread_limit": str(THREADS)}
        silent = tableauhyperapi.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU
        self.process = tableauhyperapi.HyperProcess(telemetry=silent, parameters=parameters)
        path = os.path.join(folder, "hyper.hyper")
        self.connection = tableauhyperapi.Connection(self.process.endpoint, path, tableauhyperapi.CreateMode.CREATE_AND_REPLACE)

    def load(self, table, csv):
        self.connection.execute_command(ddl(table) + ")")
        self.connection.execute_command(f"COPY {table.name} FROM '{csv}' WITH (FORMAT csv, NULL '', DELIMITER ',')")

    def settle(self):
        pass

    def ask(self, text):
        return self.connection.execute_list_query(text)

    def close(self):
        self.connection.close()
        self.process.close()


PEERS = {"duckdb": DuckDb, "hyper": Hyper, "postgres": Postgres}
