"""TPC-H: its tables as tpchgen-cli makes them, and its 22 queries with parameters drawn anew each round as the specification says
(TPC-H 3.0.1, section 2.4). The texts are those of testing/it/tpch, whose parameters are those of the validation queries."""
import os
import shutil
import subprocess

import data
import tpch
from suites.suite import Column, Table, beside_peers

NATIONS = {
    "AFRICA": ["ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"],
    "AMERICA": ["ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"],
    "ASIA": ["CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"],
    "EUROPE": ["FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"],
    "MIDDLE EAST": ["EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"],
}
REGIONS = list(NATIONS)
ALL_NATIONS = [nation for nations in NATIONS.values() for nation in nations]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]
TYPES = [["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"], ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"], ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"]]
CONTAINERS = [["SM", "LG", "MED", "JUMBO", "WRAP"], ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]]
COLORS = ["almond", "antique", "azure", "black", "blue", "brown", "chocolate", "coral", "cyan", "drab", "forest", "ghost", "green", "grey", "honeydew", "indian", "ivory", "khaki", "lace", "lemon", "lime", "maroon", "misty", "navy", "olive", "orchid", "peach", "pink", "plum", "puff", "red", "rose", "salmon", "sky", "steel", "tan", "tomato", "violet", "wheat", "yellow"]


def month(draw, first, last):
    """The first day of a month of these, as (year, month) each."""
    number = draw.randint(first[0] * 12 + first[1] - 1, last[0] * 12 + last[1] - 1)
    return f"{number // 12}-{number % 12 + 1:02}-01"


def year(draw):
    return f"{draw.randint(1993, 1997)}-01-01"


def brand(draw):
    return f"Brand#{draw.randint(1, 5)}{draw.randint(1, 5)}"


def syllables(draw, lists):
    return " ".join(map(draw.choice, lists))


def countries(draw):
    codes = draw.sample(range(10, 35), 7)
    return ", ".join(f"'{code}'" for code in codes)


def eighth(draw):
    region = draw.choice(REGIONS)
    return {"BRAZIL": draw.choice(NATIONS[region]), "AMERICA": region, "ECONOMY ANODIZED STEEL": syllables(draw, TYPES)}


def pair(draw):
    return dict(zip(["FRANCE", "GERMANY"], draw.sample(ALL_NATIONS, 2)))


def nineteenth(draw):
    texts = {f"'{old}'": f"'{brand(draw)}'" for old in ("Brand#12", "Brand#23", "Brand#34")}
    for old, low, high in (("1", 1, 10), ("10", 10, 20), ("20", 20, 30)):
        quantity = draw.randint(low, high)
        texts[f"l_quantity >= {old} AND l_quantity <= {old} + 10"] = f"l_quantity >= {quantity} AND l_quantity <= {quantity} + 10"
    return texts


def sixteenth(draw):
    sizes = ", ".join(map(str, draw.sample(range(1, 51), 8)))
    return {"Brand#45": brand(draw), "MEDIUM POLISHED": syllables(draw, TYPES[:2]), "49, 14, 23, 45, 19, 3, 36, 9": sizes}


def sixth(draw):
    return {"1994-01-01": year(draw), "0.06": f"0.0{draw.randint(2, 9)}", "< 24": f"< {draw.randint(24, 25)}"}


# What stands in a text, and what takes its place.
PARAMETERS = {
    1: lambda draw: {"'90' day": f"'{draw.randint(60, 120)}' day"},
    2: lambda draw: {"p_size = 15": f"p_size = {draw.randint(1, 50)}", "%BRASS": "%" + draw.choice(TYPES[2]), "EUROPE": draw.choice(REGIONS)},
    3: lambda draw: {"BUILDING": draw.choice(SEGMENTS), "1995-03-15": f"1995-03-{draw.randint(1, 31):02}"},
    4: lambda draw: {"1993-07-01": month(draw, (1993, 1), (1997, 10))},
    5: lambda draw: {"ASIA": draw.choice(REGIONS), "1994-01-01": year(draw)},
    6: sixth,
    7: pair,
    8: eighth,
    9: lambda draw: {"%green%": f"%{draw.choice(COLORS)}%"},
    10: lambda draw: {"1993-10-01": month(draw, (1993, 2), (1995, 1))},
    11: lambda draw: {"GERMANY": draw.choice(ALL_NATIONS)},
    12: lambda draw: dict(zip(["'MAIL'", "'SHIP'"], map(repr, draw.sample(MODES, 2)))) | {"1994-01-01": year(draw)},
    13: lambda draw: {"%special%requests%": f"%{draw.choice(['special', 'pending', 'unusual', 'express'])}%{draw.choice(['packages', 'requests', 'accounts', 'deposits'])}%"},
    14: lambda draw: {"1995-09-01": month(draw, (1993, 1), (1997, 12))},
    15: lambda draw: {"1996-01-01": month(draw, (1993, 1), (1997, 10))},
    16: sixteenth,
    17: lambda draw: {"Brand#23": brand(draw), "MED BOX": syllables(draw, CONTAINERS)},
    18: lambda draw: {"> 300": f"> {draw.randint(312, 315)}"},
    19: nineteenth,
    20: lambda draw: {"forest%": draw.choice(COLORS) + "%", "1994-01-01": year(draw), "CANADA": draw.choice(ALL_NATIONS)},
    21: lambda draw: {"SAUDI ARABIA": draw.choice(ALL_NATIONS)},
    22: lambda draw: {"'13', '31', '23', '29', '30', '18', '17'": countries(draw)},
}


class Tpch:
    """A suite whose tables have rows already."""

    name = "tpch"

    def __init__(self, scale_factor):
        self.tables = list(tables())
        texts = {int(number): text for number, text in tpch.queries().items()}
        assert sorted(texts) == sorted(PARAMETERS), "a text for each query"
        # Made for one of a hundredth (section 2.4.11.3).
        texts[11] = replaced(texts[11], {"* 0.01": f"* {0.0001 / scale_factor:.10f}"})
        self.queries = {f"q{number:02}": self.query(number, texts[number]) for number in sorted(texts)}

    @staticmethod
    def query(number, text):
        return lambda draw: replaced(text, PARAMETERS[number](draw))


def replaced(text, texts):
    """All at once, so that nothing is replaced in what has come in."""
    for place, old in enumerate(texts):
        assert old in text, f"{old} is not in {text}"
        text = text.replace(old, f"\0{place}\0")
    for place, new in enumerate(texts.values()):
        text = text.replace(f"\0{place}\0", new)
    return text


def tables():
    for name in data.TABLES:
        columns, _, key = data.DDL[name].partition(", PRIMARY KEY")
        columns = [column.split(" ", 2) for column in columns.split(", ")]
        key = key.strip(" ()") or next(column[0] for column in columns if "PRIMARY KEY" in " ".join(column))
        yield Table(name, key, [Column(column[0], column[1], "", "NOT NULL" not in column[2] and "PRIMARY KEY" not in column[2] if len(column) > 2 else True) for column in columns])


def csv(folder, table, scale_factor):
    """Without the header that the generator writes."""
    path = os.path.join(folder, f"{table.name}.csv")
    with subprocess.Popen(data.csv_command(table.name, scale_factor), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.readline()
        with open(path, "wb") as out:
            shutil.copyfileobj(process.stdout, out, 1 << 20)
    assert process.returncode == 0, f"the generator failed for {table.name}"
    return path


def run(options, engines):
    suite = Tpch(options.scale_factor)

    def load(running, folder):
        for table in suite.tables:
            path = csv(folder, table, options.scale_factor)
            for engine in running.values():
                engine.load(table, path)
            os.remove(path)

    return {"scale_factor": options.scale_factor} | beside_peers(suite, options, engines, load)
