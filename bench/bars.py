"""Bars: what figures of a line have to reach, by their names with `_min` or `_max` behind."""


def missed(options, name, line, bars):
    """The bars that the figures do not reach, in words; a quick run tells nothing, and one server has no ratios."""
    if options.quick:
        return []
    found = []
    for bar, bound in bars.items():
        figure, kind = bar[:-4], bar[-4:]
        value = line.get(figure)
        if value is None and not options.only:
            found.append(f"{name}: {figure} was not measured")
        elif value is not None and (value < bound if kind == "_min" else value > bound):
            found.append(f"{name}: {figure} is {value}, not {'at least' if kind == '_min' else 'at most'} {bound}")
    return found


def judged(result, missed):
    """The result, with `failed` where a bar was missed."""
    for text in missed:
        print(text, flush=True)
    return result | ({"failed": missed} if missed else {})
