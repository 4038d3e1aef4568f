"""Recovery: the server is killed with so much log since its last checkpoint, and started again."""
import data
import psycopg

BATCH_ROWS = 10_000


def recovery(options, engines):
    # No checkpoint but the first, nothing frozen: all of the log is to be replayed.
    wanted = options.log_mb * 1_000_000
    servers = engines(
        basalt={
            "basalt.checkpoint_log_size": 16 << 30,
            "basalt.checkpoint_interval": "1h",
            "basalt.cool_after": "1h",
            "basalt.memory_limit": "8GB",
        },
        postgres={"max_wal_size": "64GB", "checkpoint_timeout": "1h"},
    )
    result = {}
    for server in servers:
        try:
            server.start()
            data.psql(server.url, data.EVENTS)
            with psycopg.connect(server.url, autocommit=True) as connection:
                rows = fill(connection, server, wanted)
                log_bytes = server.log_bytes(connection)
            server.kill()
            seconds = server.start()
            with psycopg.connect(server.url) as connection:
                found = connection.execute("SELECT count(*) FROM events").fetchone()[0]
            assert found == rows, f"{server.name} recovered {found} rows of {rows}"
            mb_per_s = round(log_bytes / 1e6 / seconds)
            result[server.name] = {"log_bytes": log_bytes, "rows": rows, "recovery_s": round(seconds, 2), "log_mb_per_s": mb_per_s}
        finally:
            server.remove()
    return result


def fill(connection, server, wanted):
    """Batches small enough to go through the log; returns the rows."""
    rows = 0
    while server.log_bytes(connection) < wanted:
        for _ in range(10):
            with connection.cursor().copy("COPY events FROM STDIN") as copy:
                for id in range(rows, rows + BATCH_ROWS):
                    copy.write(f"{id}\t{id % 16}\t2026-01-01 00:00:00+00\t12.34\t{data.PAYLOAD}\n")
            rows += BATCH_ROWS
    return rows
