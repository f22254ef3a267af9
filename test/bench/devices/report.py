"""The arithmetic of bench-auto and bench-zoo.

    report.py RESULTS COMMAND...

RESULTS has a line of tab-separated fields a query: stage, cell, key, work_mem
in MB, contender, round, and its figures as JSON.  See grid.sh for stages and
contenders.

    add STAGE CELL KEY MEM CONTENDER ROUND FILE   what psql printed
    environment NAME VALUE
    best CELL KEY MEM N        the grid's N fastest points, by screening
    settled CELL KEY MEM % CONTENDER...   succeeds if chance makes up no more
                               than that, of any of them but points
    has CELL KEY MEM ROUNDS    succeeds if all rounds are there
    tables, csv                for people, for programs
    chart TITLE                for gnuplot
"""

import csv
import json
import math
import statistics
import sys

FIGURES = ("input_time", "run_formation_time", "merge_time", "blocked_time",
           "block_size", "assist_blocks", "direct_io", "runs", "merge_passes",
           "decision")

# A point of the grid once more, to see what is chance.
AGAIN = "again:"


def is_point(contender):
    return contender.count("/") >= 2 and not contender.startswith(AGAIN)


class Results:
    def __init__(self, path):
        self.path = path
        self.rows = []
        try:
            with open(path) as file:
                for line in file:
                    fields = line.rstrip("\n").split("\t")
                    self.rows.append(fields[:6] + [json.loads(fields[6])])
        except FileNotFoundError:
            pass

    def add(self, *fields):
        with open(self.path, "a") as file:
            file.write("\t".join(map(str, fields)) + "\n")

    def cells(self):
        return list(dict.fromkeys(tuple(row[1:4]) for row in self.rows
                                  if row[0] == "final"))

    def contenders(self, stage, cell):
        return list(dict.fromkeys(row[4] for row in self.rows
                                  if row[0] == stage
                                  and tuple(row[1:4]) == cell))

    def rounds(self, stage, cell, contender):
        return [(row[5], row[6]) for row in self.rows if row[0] == stage
                and tuple(row[1:4]) == cell and row[4] == contender]

    def found(self, stage, cell, contender):
        return [figures for _, figures in self.rounds(stage, cell, contender)]

    def ms(self, stage, cell, contender):
        found = self.found(stage, cell, contender)
        return statistics.median(f["ms"] for f in found) if found else None

    def best_point(self, cell):
        """The finalist of the grid with the lowest median."""
        points = [c for c in self.contenders("final", cell) if is_point(c)]
        return min(points, key=lambda c: self.ms("final", cell, c),
                   default=None)

    def by_turns(self, cell, contender, other, figure):
        """How many times as long as the other, round by round: a machine's
        speed changes by the minute, and a round is one."""
        own, others = ({number: figure(found) for number, found
                        in self.rounds("final", cell, name) if figure(found)}
                       for name in (contender, other))
        return [own[number] / others[number]
                for number in own if number in others]

    def by_best(self, cell, contender, figure):
        """Its own time by the best point's, round by round.  A point that is
        there again goes by itself."""
        best = (contender[len(AGAIN):] if contender.startswith(AGAIN)
                else self.best_point(cell))
        return self.by_turns(cell, contender, best, figure)

    def ratios(self, cell, contender):
        """The stock sort's time by its own, its own by the best point's, and
        that once more without the time of the input: how long a table takes
        to be read from a device has nothing to do with settings.  Medians."""
        return [median(some) for some in (
            self.by_turns(cell, "stock", contender, query_ms),
            self.by_best(cell, contender, query_ms),
            self.by_best(cell, contender, sort_ms))]


def median(ratios):
    return statistics.median(ratios) if ratios else None


def chance(ratios):
    """Another median would be as near as that in two of three cases: half the
    distance of the ratios between which the true one then is."""
    n = len(ratios)
    if n < 2:
        return None
    aside = math.sqrt(n) / 2
    ratios = sorted(ratios)
    return (ratios[min(n - 1, math.ceil(n / 2 + aside) - 1)]
            - ratios[max(0, math.floor(n / 2 - aside))]) / 2


def query_ms(found):
    return found["ms"]


def sort_ms(found):
    """What is left without what it took to hand the rows to the sort."""
    return found["ms"] - found["input_time"] if "input_time" in found else None


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def add(results, stage, cell, key, mem, contender, number, path):
    with open(path) as file:
        printed = json.load(file)
    explained = printed["plan"][0]
    stock_sorts = any(n["Node Type"] == "Sort"
                      for n in nodes(explained["Plan"]))
    if stock_sorts != (contender == "stock"):
        sys.exit("report.py: the plan of %s is not its own" % contender)
    found = {"ms": explained["Execution Time"]}
    if contender != "stock":
        found.update((name, printed["sorts"][0].get(name))
                     for name in FIGURES)
    results.add(stage, cell, key, mem, contender, number, json.dumps(found))


def add_environment(results, name, value):
    if not any(row[:2] == ["environment", name] for row in results.rows):
        results.add("environment", name, "", "", "", 1,
                    json.dumps({"value": value}))


def print_best(results, cell, key, mem, count):
    which = (cell, key, mem)
    points = results.contenders("screening", which)
    points.sort(key=lambda c: results.ms("screening", which, c))
    print(" ".join(points[:int(count)]))


def settled(results, cell, key, mem, per_cent, *contenders):
    """Is it known how they compare with the best point, and how the one that
    runs twice does with itself?"""
    which = (cell, key, mem)
    known = [chance(results.by_best(which, c, query_ms))
             for c in contenders if not is_point(c)]
    sys.exit(0 if all(some is not None and some <= float(per_cent) / 100
                      for some in known) else 1)


def has(results, cell, key, mem, rounds):
    which = (cell, key, mem)
    contenders = results.contenders("final", which)
    complete = any(map(is_point, contenders)) and all(
        len(results.found("final", which, c)) >= int(rounds)
        for c in contenders)
    sys.exit(0 if complete else 1)


# ---- for people -------------------------------------------------------------

def shown(value, digits=2):
    return "-" if value is None else "%.*f" % (digits, value)


def print_table(heads, lines):
    widths = [max(map(len, column)) for column in zip(heads, *lines)]
    print()
    for line in [heads] + lines:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width)
                        in enumerate(zip(line, widths))).rstrip())
    print()


def within(ratios):
    return ("at most %s, within 5 %% in %d and 10 %% in %d of %d cells"
            % (shown(max(ratios, default=None)),
               sum(ratio <= 1.05 for ratio in ratios),
               sum(ratio <= 1.10 for ratio in ratios), len(ratios)))


def chosen(found):
    if "block_size" not in found:
        return "-"
    return "%s x %s, %s" % (found["block_size"], found["assist_blocks"],
                            "direct" if found["direct_io"] else "cached")


def print_tables(results):
    lines = []
    judged = {}
    for cell in results.cells():
        best = results.best_point(cell)
        for name in results.contenders("final", cell):
            if is_point(name) and name != best:
                continue
            ratios = results.ratios(cell, name)
            if name.startswith(AGAIN):
                judged.setdefault("again", []).append(
                    [r and max(r, 1 / r) for r in ratios])
            elif not is_point(name) and name != "stock":
                judged.setdefault(name, []).append(ratios)
            lines.append([
                ", ".join([cell[0], cell[1], cell[2] + " MB"]), name,
                shown(results.ms("final", cell, name), 0),
                *map(shown, ratios),
                shown(chance(results.by_best(cell, name, query_ms))),
                chosen(results.found("final", cell, name)[-1])])
    print_table(["cell", "contender", "ms", "stock/it", "it/best of grid",
                 "without input", "chance", "chosen"], lines)
    for name, ratios in judged.items():
        stock, best, sort = ([r for r in some if r] for some in zip(*ratios))
        print("%s: stock/it at least %s; it/best of grid %s; without input %s"
              % (name, shown(min(stock, default=None)), within(best),
                 within(sort)))


# ---- for programs -----------------------------------------------------------

def print_csv(results):
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["stage", "cell", "key", "work_mem_mb", "contender",
                  "median_ms", "min_ms", "max_ms", "rounds", "stock_by_it",
                  "it_by_best", "sort_by_best", *FIGURES])
    for row in results.rows:
        if row[0] == "environment":
            out.writerow(["environment", row[1], row[6]["value"]])
    for stage in ("screening", "final"):
        for cell in results.cells():
            for contender in results.contenders(stage, cell):
                found = results.found(stage, cell, contender)
                times = [f["ms"] for f in found]
                ratios = (results.ratios(cell, contender)
                          if stage == "final" else (None, None, None))
                out.writerow(
                    [stage, *cell, contender]
                    + ["%.0f" % t for t in (statistics.median(times),
                                            min(times), max(times))]
                    + [len(times)]
                    + ["" if r is None else "%.3f" % r for r in ratios]
                    + [found[-1].get(name, "") for name in FIGURES])


COMMANDS = {
    "add": add,
    "environment": add_environment,
    "best": print_best,
    "settled": settled,
    "has": has,
    "tables": print_tables,
    "csv": print_csv,
}


def main(path, command, *arguments):
    COMMANDS[command](Results(path), *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
