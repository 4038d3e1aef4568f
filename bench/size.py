"""Size on disk: TPC-H after VACUUM FULL and a checkpoint, beside DuckDB's file of the same rows."""
import os
import shutil

import data
import servers as machine
import tpch


def on_disk(options, engines):
    result = {"scale_factor": options.scale_factor, "duckdb_bytes": duckdb_bytes(options)}
    for server in engines():
        try:
            server.start()
            data.load_tpch(server.url, options.scale_factor)
            for statement in ("VACUUM FULL", "CHECKPOINT"):
                data.psql(server.url, statement)
            result[server.name] = sizes(server)
        finally:
            server.remove()
    return result


def sizes(server):
    if server.name == "basalt":
        return {"files_bytes": machine.folder_bytes(os.path.join(server.dir, "files")), "log_bytes": machine.folder_bytes(os.path.join(server.dir, "log"))}
    base = os.path.join(server.dir, "data")
    return {"files_bytes": machine.folder_bytes(os.path.join(base, "base")), "log_bytes": machine.folder_bytes(os.path.join(base, "pg_wal"))}


def duckdb_bytes(options):
    folder = os.path.join(options.base, "duckdb")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tpch.load_duckdb(folder, options.scale_factor):
        pass
    path = os.path.join(folder, "tpch.db")
    total = os.path.getsize(path)
    shutil.rmtree(folder)
    return total
