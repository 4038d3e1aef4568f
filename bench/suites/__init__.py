"""Suites of analytic queries, a file each: their tables, and queries with literals that are drawn anew each round.

Basalt answers over its protocol, beside the engines of `peers.py`; `suite.py` runs them.
"""
from suites import nested, skew, star, text, tpch, web
from suites.peers import PEERS
from suites.suite import measured

ALL = {module.SUITE.name: measured(module.SUITE) for module in (star, web, skew, text, nested)} | {"tpch": tpch.run}
