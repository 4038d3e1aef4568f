"""Tables and rows: TPC-H by tpchgen-cli, written once beside the results, and a table of events for single inserts."""
import os
import subprocess
import sys

TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]

DDL = {
    "region": "r_regionkey bigint PRIMARY KEY, r_name text NOT NULL, r_comment text",
    "nation": "n_nationkey bigint PRIMARY KEY, n_name text NOT NULL, n_regionkey bigint NOT NULL, n_comment text",
    "supplier": "s_suppkey bigint PRIMARY KEY, s_name text NOT NULL, s_address text NOT NULL, s_nationkey bigint NOT NULL, "
    "s_phone text NOT NULL, s_acctbal numeric(15,2) NOT NULL, s_comment text NOT NULL",
    "customer": "c_custkey bigint PRIMARY KEY, c_name text NOT NULL, c_address text NOT NULL, c_nationkey bigint NOT NULL, "
    "c_phone text NOT NULL, c_acctbal numeric(15,2) NOT NULL, c_mktsegment text NOT NULL, c_comment text NOT NULL",
    "part": "p_partkey bigint PRIMARY KEY, p_name text NOT NULL, p_mfgr text NOT NULL, p_brand text NOT NULL, "
    "p_type text NOT NULL, p_size int NOT NULL, p_container text NOT NULL, p_retailprice numeric(15,2) NOT NULL, "
    "p_comment text NOT NULL",
    "partsupp": "ps_partkey bigint NOT NULL, ps_suppkey bigint NOT NULL, ps_availqty int NOT NULL, "
    "ps_supplycost numeric(15,2) NOT NULL, ps_comment text NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)",
    "orders": "o_orderkey bigint PRIMARY KEY, o_custkey bigint NOT NULL, o_orderstatus text NOT NULL, "
    "o_totalprice numeric(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority text NOT NULL, "
    "o_clerk text NOT NULL, o_shippriority int NOT NULL, o_comment text NOT NULL",
    "lineitem": "l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL, l_linenumber int NOT NULL, "
    "l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL, "
    "l_tax numeric(15,2) NOT NULL, l_returnflag text NOT NULL, l_linestatus text NOT NULL, l_shipdate date NOT NULL, "
    "l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct text NOT NULL, l_shipmode text NOT NULL, "
    "l_comment text NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)",
}

EVENTS = "CREATE TABLE events (id bigint PRIMARY KEY, client int NOT NULL, at timestamptz NOT NULL, amount numeric(12,2), payload text)"
PAYLOAD = "the quick brown fox jumps over the lazy dog, and then it does so once more until a hundred characters are there"[:100]


def generator():
    return os.path.join(os.path.dirname(sys.executable), "tpchgen-cli")


def csv_command(table, scale_factor):
    """Writes the table with a header to standard output."""
    return [generator(), "csv", "-s", str(scale_factor), "-T", table, "--stdout"]


def lineitem_csv(base, rows):
    """The first rows of scale factor 1, with a header."""
    path = os.path.join(base, f"lineitem-{rows}.csv")
    if not os.path.exists(path):
        with subprocess.Popen(csv_command("lineitem", 1), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            with open(path + ".tmp", "wb") as out:
                for count, line in enumerate(process.stdout):
                    out.write(line)
                    if count == rows:
                        break
            process.kill()
        os.rename(path + ".tmp", path)
    return path


def load_tpch(url, scale_factor):
    """Makes and loads the eight tables, from the generator straight into psql."""
    for table in TABLES:
        psql(url, f"CREATE TABLE {table} ({DDL[table]})")
        with subprocess.Popen(csv_command(table, scale_factor), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            psql(url, f"\\copy {table} from pstdin csv header", stdin=process.stdout)


def psql(url, command, stdin=None):
    subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", url, "-c", command], stdin=stdin, check=True)
