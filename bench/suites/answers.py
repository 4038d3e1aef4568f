"""Whether engines give the same rows: numbers to nine digits, since averages of decimals are floats in some."""
import math

# Hyper's averages of integers have six decimals.
STEP = {"hyper": 1e-6}


def differences(name, text, results, ordered):
    """Of Basalt's rows and the first peer's that has other ones, in a list: empty if all agree."""
    own = shown(results["basalt"], ordered)
    for engine, rows in results.items():
        if engine == "basalt":
            continue
        theirs = shown(rows, ordered)
        if len(own) != len(theirs):
            return [{"query": name, "text": text, "basalt_rows": len(own), f"{engine}_rows": len(theirs)}]
        for mine, other in zip(own, theirs):
            if not all(same(one, two, STEP.get(engine, 1e-9)) for one, two in zip(mine, other)):
                return [{"query": name, "text": text, "basalt": str(mine), engine: str(other)}]
    return []


def shown(rows, ordered):
    rows = [tuple(cell(value) for value in row) for row in rows]
    return rows if ordered else sorted(rows, key=place)


def place(row):
    """Where a row stands among its kin: numbers that differ in their last digits do not change it."""
    numbers = [value for value in row if is_number(value)]
    return [str(value) for value in row if not is_number(value)], [f"{value:.6g}" for value in numbers], numbers


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def cell(value):
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float) or hasattr(value, "as_tuple"):
        value = float(value) if isinstance(value, float) or value % 1 else int(value)
        return int(value) if math.isfinite(value) and value == int(value) else value
    if isinstance(value, (list, tuple)):
        return str([cell(inner) for inner in value])
    # Hyper has dates and times of its own.
    for way in ("to_datetime", "to_date"):
        if hasattr(value, way):
            value = getattr(value, way)()
    return str(value)


def same(mine, other, step):
    if is_number(mine) and is_number(other) and (isinstance(mine, float) or isinstance(other, float)):
        return math.isclose(mine, other, rel_tol=1e-9, abs_tol=step) or (math.isnan(mine) and math.isnan(other))
    return mine == other
