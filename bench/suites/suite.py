"""What a suite is and how it is run: rows from a seed, literals drawn for each round, answers compared, medians and ratios.

Every engine gets the same rows and the same statements. A statement that fails or answers otherwise than the peers is
noted with its text, and the others go on: one run shows all that is wrong.
"""
import math
import os
import random
import re
import shutil
import statistics
import time
from typing import Callable, NamedTuple

from suites import answers, peers

SEED = 1
SYLLABLES = ["ba", "sal", "to", "ri", "mun", "ke", "lo", "dra", "vi", "son", "pe", "ga", "thu", "mi", "ner", "zo", "fal", "qui", "sta", "ro"]


class Column(NamedTuple):
    """`rows`: DuckDB's expression for row number `i` of `$rows`; it may name columns before it."""

    name: str
    type: str
    rows: str
    nullable: bool = False


class Table(NamedTuple):
    """`share`: its rows, in parts of those of the suite; `rows`, where it has as many whatever the scale."""

    name: str
    key: str
    columns: list
    share: float = 1
    rows: int = 0

    def count(self, scale):
        return self.rows or max(int(scale * self.share), 1)


class Suite(NamedTuple):
    """A query is a function from `Draw` to a statement; or several, by the engine's name, "" for the others, None for one
    that is not asked. A statement with ORDER BY leaves no ties. `rows` are those of the largest table: (default, quick).
    """

    name: str
    rows: tuple
    tables: list
    queries: dict


class Draw(random.Random):
    """Literals of one round: every engine draws the same ones."""

    def zipf(self, count):
        """1 to `count`, k in proportion to 1/k, as the macro of this name."""
        return int(count ** self.random())

    def word(self, count=8000):
        return word(self.randrange(count))

    def numbers(self, low, high, count):
        return ", ".join(str(number) for number in sorted(self.sample(range(low, high + 1), count)))


def word(number):
    """One of 8,000, as the macro of this name."""
    return SYLLABLES[number % 20] + SYLLABLES[number // 20 % 20] + SYLLABLES[number // 400 % 20]


def scattered(zipf, count):
    """A key of 1 to `count`, so that the frequent ones are not neighbours. 7919 is prime."""
    return f"(({zipf}) * 7919 % {count} + 1)"


def measured(suite):
    return lambda options, engines: run(suite, options, engines)


def run(suite, options, engines):
    scale = options.rows or suite.rows[1 if options.quick else 0]
    return {"rows": scale} | beside_peers(suite, options, engines, lambda running, folder: loaded(suite, scale, running, folder))


def beside_peers(suite, options, engines, load):
    """`load` brings the suite's tables to all engines."""
    folder = os.path.join(options.base, "suites")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    servers = {server.name: server for server in engines()}
    running = {}
    try:
        running["basalt"] = peers.Basalt(servers["basalt"])
        for name in peers.available(options.peers, suite.tables):
            running[name] = peers.PEERS[name](folder, servers)
        load(running, folder)
        for engine in running.values():
            engine.settle()
        return {"peers": list(running)[1:]} | compared(suite, running, options.rounds)
    finally:
        for engine in running.values():
            engine.close()
        servers["basalt"].remove()
        shutil.rmtree(folder, ignore_errors=True)


def loaded(suite, scale, running, folder):
    maker = peers.Maker(folder, SEED, SYLLABLES)
    for table in suite.tables:
        csv = maker.csv(table, table.count(scale))
        for name, engine in running.items():
            began = time.perf_counter()
            engine.load(table, csv)
            print(f"{table.name}: {table.count(scale)} rows into {name} in {time.perf_counter() - began:.1f} s", flush=True)
        os.remove(csv)
    maker.close()


def compared(suite, running, rounds):
    result, failed, fallback = {}, [], []
    for name, query in suite.queries.items():
        figures, wrong = query_compared(suite, name, query, running, rounds)
        result[name] = figures
        failed += wrong
        if figures.get("engine") == "fallback":
            fallback.append(name)
        print(name, figures, *wrong, flush=True)
    ratios = {name: of["ratio"] for name, of in result.items() if "ratio" in of}
    summary = {"queries": result, "fallback": fallback, "failed": failed}
    if ratios:
        worst = max(ratios, key=ratios.get)
        mean = math.exp(statistics.fmean(math.log(max(ratio, 0.001)) for ratio in ratios.values()))
        summary |= {"geometric_mean": round(mean, 3), "worst": f"{worst}: {ratios[worst]}"}
    return summary


def query_compared(suite, name, query, running, rounds):
    """Round 0 warms. An engine that fails is asked no more; a peer that fails says nothing of Basalt."""
    times, figures, failed = {engine: [] for engine in running}, {}, []
    asked = {engine: of for engine, of in running.items() if worded(query, engine)}
    for number in range(rounds + 1):
        texts = {engine: worded(query, engine)(Draw(f"{SEED} {suite.name} {name} {number}")) for engine in asked}
        results = {}
        for engine in turned(list(asked), number):
            began = time.perf_counter()
            try:
                results[engine] = asked[engine].ask(texts[engine])
            except peers.FAILURES as error:
                del asked[engine]
                figures[f"{engine}_failed"] = str(error).strip().splitlines()[0]
                if engine == "basalt":
                    failed.append({"query": name, "failed": str(error), "text": texts[engine]})
                    running[engine].revive()
                continue
            if number > 0:
                times[engine].append(time.perf_counter() - began)
        if "basalt" in results:
            ordered = re.search(r"ORDER BY[^()]*$", texts["basalt"]) is not None
            figures["rows"] = len(results["basalt"])
            failed += answers.differences(name, texts["basalt"], results, ordered)
        if "basalt" not in asked:
            break
        if number == 0:
            figures["engine"] = asked["basalt"].engine(texts["basalt"])
    medians = {engine: statistics.median(times[engine]) for engine in asked if times[engine]}
    figures |= {f"{engine}_ms": round(seconds * 1000, 2) for engine, seconds in medians.items()}
    if "basalt" in medians and len(medians) > 1:
        best = min(seconds for engine, seconds in medians.items() if engine != "basalt")
        figures["ratio"] = round(medians["basalt"] / best, 2)
    return figures, failed


def worded(query: Callable | dict, engine):
    return query.get(engine, query[""]) if isinstance(query, dict) else query


def turned(names, number):
    """Who is first changes from round to round: the first one finds the caches cold."""
    first = number % len(names) if names else 0
    return names[first:] + names[:first]
