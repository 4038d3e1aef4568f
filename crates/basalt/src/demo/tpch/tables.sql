CREATE TABLE IF NOT EXISTS region (
    r_regionkey bigint PRIMARY KEY, r_name text NOT NULL, r_comment text);
CREATE TABLE IF NOT EXISTS nation (
    n_nationkey bigint PRIMARY KEY, n_name text NOT NULL, n_regionkey bigint NOT NULL, n_comment text);
CREATE TABLE IF NOT EXISTS supplier (
    s_suppkey bigint PRIMARY KEY, s_name text NOT NULL, s_address text NOT NULL, s_nationkey bigint NOT NULL,
    s_phone text NOT NULL, s_acctbal numeric(15,2) NOT NULL, s_comment text NOT NULL);
CREATE TABLE IF NOT EXISTS customer (
    c_custkey bigint PRIMARY KEY, c_name text NOT NULL, c_address text NOT NULL, c_nationkey bigint NOT NULL,
    c_phone text NOT NULL, c_acctbal numeric(15,2) NOT NULL, c_mktsegment text NOT NULL, c_comment text NOT NULL);
CREATE TABLE IF NOT EXISTS part (
    p_partkey bigint PRIMARY KEY, p_name text NOT NULL, p_mfgr text NOT NULL, p_brand text NOT NULL,
    p_type text NOT NULL, p_size int NOT NULL, p_container text NOT NULL, p_retailprice numeric(15,2) NOT NULL,
    p_comment text NOT NULL);
CREATE TABLE IF NOT EXISTS partsupp (
    ps_partkey bigint NOT NULL, ps_suppkey bigint NOT NULL, ps_availqty int NOT NULL,
    ps_supplycost numeric(15,2) NOT NULL, ps_comment text NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE IF NOT EXISTS orders (
    o_orderkey bigint PRIMARY KEY, o_custkey bigint NOT NULL, o_orderstatus text NOT NULL,
    o_totalprice numeric(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority text NOT NULL,
    o_clerk text NOT NULL, o_shippriority int NOT NULL, o_comment text NOT NULL);
CREATE TABLE IF NOT EXISTS lineitem (
    l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL, l_linenumber int NOT NULL,
    l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL,
    l_tax numeric(15,2) NOT NULL, l_returnflag text NOT NULL, l_linestatus text NOT NULL, l_shipdate date NOT NULL,
    l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct text NOT NULL, l_shipmode text NOT NULL,
    l_comment text NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber));
