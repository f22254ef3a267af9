"""The arithmetic of the tuplesort benchmark.

    report.py RESULTS COMMAND...

RESULTS is a file of tab-separated measurements: part, key, work_mem in MB,
contender, metric, round, value.  Round 0 is a warm-up and counts nowhere.

    collect PART KEY MEM FILE     adds what psql printed: plans and sorts
    calls KEY MEM CONTENDER FILE  adds what strace -c counted
    stxxl KEY MEM ROUND FILE      adds what stxxl_sorter printed
    unit                          seconds that a first query took
    records MEM                   rows, and bytes of each as they are spilled
    tables                        prints all that was found, for people
    csv                           prints medians and ratios
    chart                         prints a chart, for gnuplot
"""

import csv
import json
import math
import statistics
import sys

READS = ("read", "pread64", "readv", "preadv", "preadv2")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
TITLES = {
    "free": "Whole queries, the page cache free",
    "held": "Whole queries, the server's memory held down",
    "memory": "Wholly in memory",
    "parallel": "Two workers below a Gather Merge",
}


def fail(message):
    sys.exit("report.py: " + message)


def ordered(values):
    """Without repetitions, in order of appearance."""
    return list(dict.fromkeys(values))


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Results:
    def __init__(self, path):
        self.path = path
        self.rows = []
        try:
            with open(path) as file:
                self.rows = [line.rstrip("\n").split("\t") for line in file]
        except FileNotFoundError:
            pass

    def add(self, *fields):
        row = [str(field) for field in fields]
        self.rows.append(row)
        with open(self.path, "a") as file:
            file.write("\t".join(row) + "\n")

    def values(self, part, key, mem, contender, metric, warm_up=False):
        wanted = [part, key, str(mem), contender, metric]
        return [float(row[6]) for row in self.rows
                if row[:5] == wanted and (warm_up or row[5] != "0")]

    def median(self, *which):
        values = self.values(*which)
        return statistics.median(values) if values else None

    def cells(self, part):
        """Its keys with their work_mem."""
        return ordered((row[1], row[2]) for row in self.rows
                       if row[0] == part and row[5] != "0" and row[2])

    def ratio(self, part, key, mem):
        """How many times as fast fmsort is as the stock sort."""
        metric = "tps" if part == "small" else "ms"
        stock, fmsort = (self.median(part, key, mem, side, metric)
                         for side in ("stock", "fmsort"))
        if not (stock and fmsort):
            return None
        return fmsort / stock if part == "small" else stock / fmsort

    def ratios(self, part):
        ratios = (self.ratio(part, *cell) for cell in self.cells(part))
        return [ratio for ratio in ratios if ratio]


# ---- what the programs say --------------------------------------------------

def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def is_fmsort(node):
    return node.get("Custom Plan Provider") == "FMSort"


def check_plan(part, contender, plan):
    """Is this the plan that we mean to measure?"""
    all_nodes = list(nodes(plan))
    sorts = {"stock": any(n["Node Type"] == "Sort" for n in all_nodes),
             "fmsort": any(map(is_fmsort, all_nodes))}
    for name, found in sorts.items():
        if found != (name == contender):
            fail("the plan of %s is not its own: %s"
                 % (contender, [n["Node Type"] for n in all_nodes]))
    gather = [n for n in all_nodes if n["Node Type"] == "Gather Merge"]
    if part == "parallel" and not (gather and
                                   gather[0].get("Workers Launched") == 2):
        fail("there were no two workers below a Gather Merge")


def collect_plan(results, where, contender, number, explained):
    plan = explained["Plan"]
    check_plan(where[0], contender, plan)

    def add(metric, value):
        results.add(*where, contender, metric, number, value)

    add("ms", explained["Execution Time"])
    add("rows", plan["Actual Rows"])
    for node in nodes(plan):
        # Of parallel sorts it would be the leader's alone.
        if "Sort Space Type" in node and where[0] != "parallel":
            spilled = node["Sort Space Type"] == "Disk"
            add("spill_kb", node["Sort Space Used"] if spilled else 0)


def collect_sorts(results, where, number, sorts):
    """fmsort_last_sort()'s figures, of one sort."""
    if len(sorts) != 1:
        return
    for metric in ("run_formation_ms", "merge_ms", "blocked_ms", "runs",
                   "merge_passes"):
        value = sorts[0].get(metric.replace("_ms", "_time"))
        if value is not None:
            results.add(*where, "fmsort", metric, number, value)


def collect(results, part, key, mem, path):
    where = (part, key, mem)
    with open(path) as file:
        pieces = file.read().split("\n@ ")
    pieces[0] = pieces[0].removeprefix("@ ")
    for piece in pieces:
        head, body = piece.split("\n", 1)
        name, number = head.split()
        found = json.loads(body)
        if name == "sorts":
            collect_sorts(results, where, number, found)
        else:
            collect_plan(results, where, name, number, found[0])
    counts = {row[6] for row in results.rows
              if row[0] == part and row[1] == key and row[4] == "rows"}
    if len(counts) != 1:
        fail("not all queries had the same number of rows")


def collect_calls(results, key, mem, contender, path):
    counts = {}
    with open(path) as file:
        for line in file:
            fields = line.split()
            if len(fields) >= 5 and fields[3].isdigit():
                counts[fields[-1]] = int(fields[3])
    found = {"reads": sum(counts.get(name, 0) for name in READS),
             "writes": sum(counts.get(name, 0) for name in WRITES),
             "io_uring_enter": counts.get("io_uring_enter", 0),
             "all_calls": counts["total"]}
    for metric, value in found.items():
        results.add("calls", key, mem, contender, metric, 1, value)


def collect_stxxl(results, key, mem, number, path):
    with open(path) as file:
        found = json.load(file)
    found["ms"] = found.pop("total_ms")
    for metric, value in found.items():
        results.add("stxxl", key, mem, "stxxl", metric, number, value)


def print_unit(results):
    print(max(float(row[6]) for row in results.rows
              if row[0] == "unit" and row[4] == "ms") / 1000)


def print_records(results, mem):
    """Rows, and bytes of the stock sort's spill for each."""
    key = next(row[1] for row in results.rows if row[0] == "stxxl")
    rows, spill = (results.values("stxxl", key, mem, "stock", metric, True)[0]
                   for metric in ("rows", "spill_kb"))
    if not spill:
        fail("with %s MB nothing is spilled: use a larger SF" % mem)
    print(int(rows), max(16, round(spill * 1024 / rows / 8) * 8))


# ---- for people -------------------------------------------------------------

def shown(value, digits=0):
    return "-" if value is None else "%.*f" % (digits, value)


def print_table(title, heads, lines):
    if not lines:
        return
    widths = [max(map(len, column)) for column in zip(heads, *lines)]
    print("\n== " + title)
    for line in [heads] + lines:
        cells = [cell.ljust(width) if i == 0 else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())


def print_summary(results, part):
    ratios = results.ratios(part)
    if ratios:
        print("geometric mean %.2f, minimum %.2f"
              % (geometric_mean(ratios), min(ratios)))


def print_queries(results, part):
    lines = []
    for key, mem in results.cells(part):
        def median(side, metric):
            return results.median(part, key, mem, side, metric)

        merge, blocked = (median("fmsort", m)
                          for m in ("merge_ms", "blocked_ms"))
        spill = median("stock", "spill_kb")
        lines.append([
            key, mem,
            "none" if spill == 0 else shown(spill and spill / 1024),
            shown(median("scan", "ms")),
            shown(median("stock", "ms")), shown(median("fmsort", "ms")),
            shown(results.ratio(part, key, mem), 2),
            shown(merge),
            shown(100 * blocked / merge if merge else None)])
    print_table(TITLES[part],
                ["ORDER BY", "work_mem MB", "spill MB", "scan ms", "stock ms",
                 "fmsort ms", "stock/fmsort", "merge ms", "blocked %"], lines)
    print_summary(results, part)


def print_small(results):
    lines = [[key, *(shown(results.median("small", key, mem, side, "tps"), 1)
                     for side in ("stock", "fmsort")),
              shown(results.ratio("small", key, mem), 3)]
             for key, mem in results.cells("small")]
    print_table("Small sorts, transactions a second",
                ["query", "stock", "fmsort", "fmsort/stock"], lines)


def calls_per_gb(results, key, mem, side, metric):
    """Those of the sort: without what the scan alone makes, at least none."""
    count, scan = (results.median("calls", key, mem, who, metric)
                   for who in (side, "scan"))
    spill = results.median("calls", key, mem, "stock", "spill_kb")
    if count is None or not spill:
        return None
    return max(0, count - scan) / (spill * 1024 / 1e9)


def print_calls(results):
    metrics = ("reads", "writes", "io_uring_enter", "all_calls")
    lines = [[side, mem,
              *(shown(calls_per_gb(results, key, mem, side, metric))
                for metric in metrics)]
             for key, mem in results.cells("calls")
             for side in ("stock", "fmsort")]
    print_table("System calls for each GB that the stock sort spills "
                "(without the scan's)",
                ["contender", "work_mem MB", "read", "write",
                 "io_uring_enter", "all"], lines)


def print_cache(results):
    lines = []
    for key, mem in results.cells("cache"):
        for side in ("stock", "fmsort"):
            spill = results.median("cache", key, mem, side, "spill_kb")
            growth = results.median("cache", key, mem, side, "growth_mb")
            lines.append([side, mem, shown(spill and spill / 1024),
                          shown(growth)])
    print_table("Growth of the page cache during one sort",
                ["contender", "work_mem MB", "spill MB", "growth MB"], lines)


def print_stxxl(results):
    lines = []
    for key, mem in results.cells("stxxl"):
        scan, stock, fmsort, stxxl = (
            results.median("stxxl", key, mem, side, "ms")
            for side in ("scan", "stock", "fmsort", "stxxl"))
        lines.append([
            mem,
            *(shown(results.median("stxxl", key, mem, "stxxl", metric))
              for metric in ("width", "block_size")),
            shown(stxxl), shown(fmsort - scan), shown(stock - scan),
            shown(stxxl / (fmsort - scan), 2)])
    print_table("Beside STXXL's sorter: queries without their scans",
                ["work_mem MB", "record B", "STXXL's block", "STXXL ms",
                 "fmsort ms", "stock ms", "STXXL/fmsort"], lines)


def floor_ms(results, part, key, mem):
    """The scan, and the smaller spill written and read in sequence."""
    write, read = (results.median("floor", "", "", "disk", rw + "_mb_per_s")
                   for rw in ("write", "read"))
    scan = results.median(part, key, mem, "scan", "ms")
    spills = [spill for spill in
              (results.median(part, key, mem, side, "spill_kb")
               for side in ("stock", "fmsort")) if spill]
    if not (write and read and scan and spills):
        return None
    megabytes = min(spills) * 1024 / 1e6
    return scan + 1000 * (megabytes / write + megabytes / read)


def print_floor(results):
    lines = []
    for part in ("free", "held"):
        for key, mem in results.cells(part):
            floor = floor_ms(results, part, key, mem)
            if floor:
                lines.append([key, mem, part, shown(floor),
                              *(shown(results.median(part, key, mem, side,
                                                     "ms") / floor, 2)
                                for side in ("stock", "fmsort"))])
    if lines:
        write, read = (results.median("floor", "", "", "disk",
                                      rw + "_mb_per_s")
                       for rw in ("write", "read"))
        print_table("Distance to the floor: a scan, and the spill at the "
                    "disk's speed (written %.0f MB/s, read %.0f MB/s)"
                    % (write, read),
                    ["ORDER BY", "work_mem MB", "page cache", "floor ms",
                     "stock/floor", "fmsort/floor"], lines)


def growths(results):
    """work_mem, contender, from scale, to scale, how many times as long"""
    cells = results.cells("growth")
    scales = ordered(scale for scale, mem in cells)
    for mem in ordered(mem for scale, mem in cells):
        for side in ("stock", "fmsort"):
            times = [results.median("growth", scale, mem, side, "ms")
                     for scale in scales]
            for i in range(1, len(scales)):
                yield (mem, side, scales[0], scales[i], times[i] / times[0])


def print_growth(results):
    lines = [[side, mem, first, last, shown(growth, 2),
              shown(growth / (float(last) / float(first)), 3)]
             for mem, side, first, last, growth in growths(results)]
    print_table("Growth with the data",
                ["contender", "work_mem MB", "from SF", "to SF",
                 "times as long", "per row"], lines)


def print_notes(results):
    for part in ("free", "held"):
        for key, mem in results.cells(part):
            for side in ("stock", "fmsort"):
                if results.median(part, key, mem, side, "spill_kb") == 0:
                    print("Note: %s did not spill with %s MB (%s)."
                          % (side, mem, key))
            passes = results.median(part, key, mem, "fmsort", "merge_passes")
            if passes and passes > 1:
                print("Note: fmsort took %d merge passes with %s MB (%s, %s)."
                      % (passes, mem, key, part))
    for key, mem in results.cells("memory"):
        for side in ("stock", "fmsort"):
            if results.median("memory", key, mem, side, "spill_kb"):
                print("Note: %s spilled even with 2 GB (%s)." % (side, key))


def print_tables(results):
    for part in ("free", "held", "memory"):
        print_queries(results, part)
    print_small(results)
    print_queries(results, "parallel")
    print_calls(results)
    print_cache(results)
    print_stxxl(results)
    print_floor(results)
    print_growth(results)
    print()
    print_notes(results)


# ---- for programs -----------------------------------------------------------

def print_csv(results):
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["part", "key", "work_mem_mb", "contender", "metric",
                  "median", "min", "max", "rounds"])
    for row in results.rows:
        if row[0] == "environment":
            out.writerow(["environment", "", "", "", row[1], row[6], "", "",
                          ""])
    measured = ordered(tuple(row[:5]) for row in results.rows
                       if row[0] not in ("environment", "unit")
                       and row[5] != "0")
    for which in measured:
        values = results.values(*which)
        out.writerow([*which] + ["%.6g" % value for value in
                                 (statistics.median(values), min(values),
                                  max(values))] + [len(values)])
    for part in (*TITLES, "small"):
        for cell in results.cells(part):
            ratio = results.ratio(part, *cell)
            out.writerow([part, *cell, "", "ratio", shown(ratio, 4), "", "",
                          ""])
        ratios = results.ratios(part)
        if ratios:
            for name, value in (("ratio_geometric_mean",
                                 geometric_mean(ratios)),
                                ("ratio_minimum", min(ratios))):
                out.writerow([part, "", "", "", name, shown(value, 4), "", "",
                              ""])
    for part in ("free", "held"):
        for cell in results.cells(part):
            floor = floor_ms(results, part, *cell)
            if floor:
                out.writerow([part, *cell, "", "floor_ms", shown(floor, 1),
                              "", "", ""])
    for mem, side, first, last, growth in growths(results):
        out.writerow(["growth", "%s to %s" % (first, last), mem, side,
                      "growth", shown(growth, 3), "", "", ""])


COMMANDS = {
    "collect": collect,
    "calls": collect_calls,
    "stxxl": collect_stxxl,
    "unit": print_unit,
    "records": print_records,
    "tables": print_tables,
    "csv": print_csv,
}


def main(path, command, *arguments):
    COMMANDS[command](Results(path), *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
