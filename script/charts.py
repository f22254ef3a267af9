"""Draws the charts of docs/benchmarks, as SVG, from the CSV files beside them.

    charts.py DIRECTORY [OUTPUT DIRECTORY]

A bar is a speed-up over PostgreSQL's sort, PostgreSQL's time divided by fmsort's:
higher is better.  A whisker spans the least and the most that the rounds make
possible.  Axes begin at 0, no bar is cut.  A missing CSV file has no chart.

A bar is a tuple (median, low, high), or None where nothing was measured; low and
high are the median where a CSV file has no spread.  A panel is (title, names of
series, {label: bars}), with a bar for each of the series.
"""

import csv
import re
import sys
import textwrap
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

COLOURS = ["#2563eb", "#0d9488", "#d97706", "#be185d"]
TEXT, MUTED, LINE = "#1f2328", "#59636e", "#d0d7de"
BAR, GAP = 0.17, 0.12           # heights of a bar, between groups; inches

matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "fmsort",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"], "font.size": 9,
    "text.color": TEXT, "axes.labelcolor": MUTED, "axes.edgecolor": LINE,
    "xtick.color": MUTED, "ytick.color": LINE, "ytick.labelcolor": TEXT,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.titlesize": 10,
    "axes.grid": True, "axes.grid.axis": "x", "grid.color": LINE,
    "legend.frameon": False, "legend.borderpad": 0, "legend.handlelength": 1,
})

KEYS = {"o_orderdate": "date", "o_custkey": "integer", "o_totalprice": "numeric",
        "o_comment": "text", "o_clerk, o_orderdate DESC": "text, then date",
        "o_orderkey": "bigint, in order"}


def number(x):
    return "%.1f×" % x if x < 9.95 else "%.0f×" % x


def draw_panel(axes, title, series, rows, top):
    pitch = len(series) * BAR + GAP
    for i, (name, colour) in enumerate(zip(series, COLOURS)):
        found = [(row * pitch + i * BAR, *bars[i])
                 for row, bars in enumerate(rows.values()) if bars[i]]
        if not found:
            continue
        axes.barh([at[0] for at in found], [at[1] for at in found], 0.85 * BAR,
                  color=colour, label=name)
        for y, value, low, high in found:
            if low < high:
                axes.errorbar(value, y, xerr=[[value - low], [high - value]],
                              fmt="none", ecolor=TEXT, elinewidth=1, capsize=2)
            axes.annotate(number(value), (max(high, 1), y), (5, 0), size=8,
                          textcoords="offset points", va="center")
    axes.set_yticks([row * pitch + (len(series) - 1) * BAR / 2
                     for row in range(len(rows))], list(rows))
    axes.set_ylim(len(rows) * pitch - BAR / 2, -BAR / 2 - GAP)
    axes.set_xlim(0, top * 1.15)
    axes.locator_params(axis="x", nbins=7, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_formatter("{x:g}×")
    axes.axvline(1, color=TEXT, linewidth=1, linestyle="--")
    axes.set_title(title, pad=22 if len(series) > 1 else 6)
    if len(series) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=len(series),
                    borderaxespad=0.4, columnspacing=1, handletextpad=0.5)


def describe(title, series, rows):
    """A panel's numbers in words, for those who do not see the chart."""
    return title + ": " + "; ".join(
        label + " " + ", ".join((name + " " + number(bar[0])).strip()
                                for name, bar in zip(series, bars) if bar)
        for label, bars in rows.items()) + "."


def draw(path, title, panels, caption, whiskers="the range over all rounds"):
    """A chart: up to two panels side by side, all with the same axis."""
    panels = [(name, series, {label: bars for label, bars in rows.items() if any(bars)})
              for name, series, rows in panels]
    panels = [panel for panel in panels if panel[2]]
    if not panels:
        return
    known = [bar for _, _, rows in panels for bars in rows.values()
             for bar in bars if bar]
    top = max(max(1.1, *bar) for bar in known)
    if any(low < high for _, low, high in known):
        caption = "Whiskers are %s. " % whiskers + caption
    caption = textwrap.wrap("Bars are medians, the dashed line is PostgreSQL. "
                            + caption, 125)
    columns = min(2, len(panels))
    heights = [max(len(rows) * (len(series) * BAR + GAP) + 0.9
                   for _, series, rows in panels[i:i + columns])
               for i in range(0, len(panels), columns)]
    # A light card, which is readable on light and on dark pages.
    figure = Figure((9, sum(heights) + 0.5 + 0.15 * len(caption)),
                    layout="constrained", edgecolor=LINE, linewidth=2)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
    figure.suptitle(title, x=0.015, ha="left", size=13, weight="bold")
    figure.supxlabel("\n".join(caption), x=0.015, ha="left", size=8, color=MUTED)
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    for i, panel in enumerate(panels):
        axes = figure.add_subplot(grid[divmod(i, columns)])
        draw_panel(axes, *panel, top)
        if i + columns >= len(panels):
            axes.set_xlabel("Times as fast as PostgreSQL (higher is better)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={
        "Title": title, "Description": " ".join(describe(*p) for p in panels),
        "Date": None, "Creator": None})


# ---- CSV files ---------------------------------------------------------------

def read(path):
    """Facts, {name: value}, and rows, {column: value} each.  Facts are comments
    "# name: value" or rows of the part (stage) "environment"."""
    lines = path.read_text(encoding="utf-8").splitlines()
    facts = dict(re.findall(r"^# ([^:]+): (.*)$", "\n".join(lines), re.MULTILINE))
    lines = [line for line in lines if not line.startswith("#")]
    for row in csv.reader(lines):
        if row[0] == "environment":
            name, value = [field for field in row[1:] if field][:2]
            facts.setdefault(name, value)
    return facts, [row for row in csv.DictReader(lines)
                   if "environment" not in row.values()]


def conditions(facts):
    """What was measured on."""
    known = (("fmsort", "fmsort %s", "[^ ,]+"),
             ("PostgreSQL", "PostgreSQL %s", "[^ ,]+"),
             ("orders", "TPC-H orders of %s", ".+"),
             ("scale", "TPC-H orders at scale factor %s", "[0-9]+"),
             ("processor", "%s", ".+"),
             ("cores", "%s cores", ".+"), ("memory", "%s of memory", "[0-9]+ MB"),
             ("disk", "disk %s", ".+"), ("kernel", "Linux %s", "[^-]+"))
    return "Measured with %s." % ", ".join(
        form % re.match(pattern, facts[name])[0]
        for name, form, pattern in known if name in facts)


def fields(row, median, low, high):
    """A bar, or a time with its range, from these columns of a row."""
    return tuple(float(row.get(name) or row[median]) for name in (median, low, high))


def speedup(stock, ours):
    """A bar from two times: (median, least, most)."""
    if not stock or not ours:
        return None
    return stock[0] / ours[0], stock[1] / ours[2], stock[2] / ours[1]


# ---- charts ------------------------------------------------------------------

def chart_tuplesort(facts, rows, path):
    """By type of key: in memory, spilled, parallel, memory limited."""
    rows = [row for row in rows if row["metric"] == "ms"]
    found = {(row["part"], row["key"], row["work_mem_mb"], row["contender"]):
             fields(row, "median", "min", "max") for row in rows}

    def sizes(*parts):
        return list(dict.fromkeys(row["work_mem_mb"] for row in rows
                                  if row["part"] in parts))

    def panel(title, part, mems, series=("",)):
        return title, series, {
            name: [speedup(found.get((part, key, mem, "stock")),
                           found.get((part, key, mem, "fmsort"))) for mem in mems]
            for key, name in KEYS.items()}

    spilled = sizes("free", "held")
    held = "In %s of memory" % facts.get("held to", "").partition(",")[0]
    middle = spilled[len(spilled) // 2:][:1]
    draw(path, "How much faster fmsort sorts, by type of key", [
        panel("%s (work_mem %s MB)" % (title, "".join(mems)), part, mems)
        for title, part, mems in (
            ("In memory", "memory", sizes("memory")), ("Spilled", "free", middle),
            ("Spilled, two workers", "parallel", sizes("parallel")),
            (held, "held", middle))], conditions(facts))
    series = [mem + " MB" for mem in spilled]
    draw(path.with_name(path.stem + "-work-mem.svg"),
         "Spilled sorts, by type of key and work_mem", [
             panel("Memory free", "free", spilled, series),
             panel(held, "held", spilled, series)], conditions(facts))


CELLS = {"unlimited": "this machine's disk", "sata": "500 MB/s", "cloud": "125 MB/s",
         "slow": "30 MB/s", "warm": "in page cache", "cold": "on disk",
         "free": "Memory free", "held": "In 400 MB of memory",
         "": "By where the table is, and work_mem"}


def chart_devices(facts, rows, path):
    """Automatic settings and the best of a grid, by device and memory."""
    panels, found = {}, {}
    for row in rows:
        if row["stage"] == "final":
            times = found.setdefault((row["cell"], row["work_mem_mb"]), {})
            times[row["contender"]] = fields(row, "median_ms", "min_ms", "max_ms")
            if row["it_by_best"] == "1.000":
                times["best"] = times[row["contender"]]
    for (cell, mem), times in found.items():
        device, _, memory = cell.partition(", ")
        label = CELLS.get(device, device) + ("" if memory else ", %s MB" % mem)
        panels.setdefault(memory, {})[label] = [
            speedup(times.get("stock"), times.get(it)) for it in ("unknown", "best")]
    draw(path, "Automatic settings beside the best of a grid", [
        (CELLS.get(memory, memory), ["as installed", "best of a grid"], panel)
        for memory, panel in panels.items()], conditions(facts))


KINDS = {"One column": {"int": "integer", "date": "date", "numeric": "numeric",
                        "text_c": "text, C"},
         "Other sorts": {"bigint": "bigint", "text_icu": "text, ICU",
                         "two_columns": "two columns", "whole_row": "whole rows"}}


def chart_small(facts, rows, path):
    """Small sorts: by number of rows, four types a panel."""
    found = {(row["work_mem"], row["kind"], row["rows"]):
             fields(row, "ratio", "low", "high") for row in rows}
    draw(path, "Small sorts: processor time, by number of rows and type", [
        ("%s (work_mem %s)" % (title, mem), list(kinds.values()), {
            "{:,} rows".format(int(count)): [found.get((mem, kind, count))
                                             for kind in kinds]
            for count in dict.fromkeys(row["rows"] for row in rows)})
        for mem in dict.fromkeys(row["work_mem"] for row in rows)
        for title, kinds in KINDS.items()],
        conditions(facts), "95 % confidence intervals")


QUERIES = {"bound: random": "LIMIT 500,000",
           "bound: each row better": "LIMIT, worst order",
           "offset: random": "OFFSET 3,000,000",
           "offset: all rows but a few": "OFFSET 100,000",
           "group: DISTINCT ON clerk": "DISTINCT ON, 5,000 groups",
           "group: first row of clerk": "row_number(), 5,000 groups",
           "group: DISTINCT ON custkey": "DISTINCT ON, 500,000 groups",
           "group: first row of custkey": "row_number(), 500,000 groups",
           "group: groups of one row": "DISTINCT ON, groups of one row",
           "limit": "LIMIT 1000", "offset": "OFFSET", "count": "count(*)",
           "all": "every row"}


def by_query(bars):
    """A panel's series and rows, from {(query, setting): bar}."""
    settings = list(dict.fromkeys(setting for _, setting in bars))
    return settings, {QUERIES.get(query, query): [bars.get((query, setting))
                                                  for setting in settings]
                      for query, _ in bars}


def chart_less(facts, rows, path):
    """Queries that need less than all rows in order."""
    bars = {(row["part"] + ": " + row["cell"], row["work_mem"]):
            fields(row, "stock_by_on", "stock_by_on_low", "stock_by_on_high")
            for row in rows}
    draw(path, "Queries that need only a part of the sorted rows", [
        ("By query and work_mem", *by_query(bars))],
        conditions(facts), "95 % confidence intervals")


def chart_shards(facts, rows, path):
    """Rows of other servers, beside PostgreSQL's Merge Append."""
    bars = {(row["query"], row["fetch_size"] + " rows"):
            fields(row, "ratio", "low", "high") for row in rows}
    draw(path, "Sorted shards, beside PostgreSQL's Merge Append", [
        ("By query and fetch_size of postgres_fdw", *by_query(bars))],
        "Shards, all on one machine: %s. %s" % (facts["shards"], conditions(facts)))


def chart_parallel(facts, rows, path):
    """fmsort in one process and in two beside PostgreSQL's best."""
    found = {(row["work_mem"], row["key"], row["contender"]):
             fields(row, "ms", "min", "max") for row in rows}

    def bars(mem, key):
        stock = [found.get((mem, key, name)) for name in ("stock-1", "stock-2")]
        return [speedup(min(filter(None, stock), default=None),
                        found.get((mem, key, name)))
                for name in ("fmsort-1", "fmsort-2")]

    draw(path, "Parallel sorts, beside PostgreSQL's best of one and two workers", [
        ("work_mem " + mem, ["one process", "two processes"],
         {name: bars(mem, key) for key, name in KEYS.items()})
        for mem in dict.fromkeys(row["work_mem"] for row in rows)], conditions(facts))


CHARTS = {"tuplesort.csv": chart_tuplesort, "tuplesort-refused.csv": chart_tuplesort,
          "tuplesort-unlocked.csv": chart_tuplesort, "zoo.csv": chart_devices,
          "auto.csv": chart_devices, "small/postgresql-*.csv": chart_small,
          "less.csv": chart_less, "parallel.csv": chart_parallel,
          "shards.csv": chart_shards}


def main(directory, out=None):
    for pattern, chart in CHARTS.items():
        for source in sorted(Path(directory).glob(pattern)):
            chart(*read(source), (Path(out or directory)
                  / source.relative_to(directory)).with_suffix(".svg"))


if __name__ == "__main__":
    main(*sys.argv[1:])
