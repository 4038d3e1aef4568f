#!/usr/bin/env bash
# Prepares what the measurements need outside the tree (a Python environment, data) and runs them: see README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# Not in a home folder: PostgreSQL refuses to run as root, and its own user must get here.
export BENCH_DIR=${BENCH_DIR:-/var/tmp/basalt-bench-$(id -u)}
mkdir -p "$BENCH_DIR"
if [ ! -x "$BENCH_DIR/venv/bin/python" ]; then
  python3 -m venv "$BENCH_DIR/venv"
fi
if ! "$BENCH_DIR/venv/bin/python" -c 'import duckdb, psycopg' 2>/dev/null || [ ! -x "$BENCH_DIR/venv/bin/tpchgen-cli" ]; then
  "$BENCH_DIR/venv/bin/pip" install -q 'duckdb==2.0.0' 'psycopg[binary]' 'tpchgen-cli==4.0.0'
fi
exec "$BENCH_DIR/venv/bin/python" "$here/measure.py" "$@"
