"""Draws the charts of docs/benchmarks, as SVG, from the CSV files beside them.

    charts.py DIRECTORY [OUTPUT DIRECTORY]

Every bar is a speed-up over PostgreSQL's sort: PostgreSQL's median time by
fmsort's, so higher is better, and 1 is as fast.  A whisker spans the least and
the most that the rounds make possible.  Axes begin at 0, and no bar is cut.
Where a CSV file is missing, its chart is left out.

A chart has colours for light and for dark pages, a background of its own, and
its numbers as a description for those who do not see it.
"""

import csv
import os
import re
import sys
import textwrap
from html import escape

WIDTH = 860
MARGIN = 18
LABELS = 128            # left of a panel's bars
NUMBERS = 52            # right of them
BAR = 15
GAP = 9                 # between groups of bars

# Colours of up to four series: on a light page, on a dark page.
SERIES = [("#2563eb", "#60a5fa"), ("#0d9488", "#2dd4bf"),
          ("#d97706", "#fbbf24"), ("#be185d", "#f472b6")]
STYLE = """
  .page { fill: #ffffff; stroke: #d0d7de }
  text { font: 12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 }
  .panel { font-size: 13.5px; font-weight: 600 }
  .muted { fill: #59636e; font-size: 11px }
  .grid { stroke: #d8dee4 }
  .one { stroke: #1f2328; stroke-dasharray: 4 3 }
  .whisker { stroke: #1f2328; stroke-width: 1.2; opacity: 0.75 }
%s
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d }
    text { fill: #f0f6fc }
    .muted { fill: #9198a1 }
    .grid { stroke: #3d444d }
    .one, .whisker { stroke: #f0f6fc }
%s
  }
""" % ("\n".join("  .s%d { fill: %s }" % (i, c[0]) for i, c in enumerate(SERIES)),
       "\n".join("    .s%d { fill: %s }" % (i, c[1]) for i, c in enumerate(SERIES)))

KEYS = {
    "o_orderdate": "date",
    "o_custkey": "integer",
    "o_totalprice": "numeric",
    "o_comment": "text",
    "o_clerk, o_orderdate DESC": "text, then date",
    "o_orderkey": "bigint, in order",
}


class Panel:
    """Groups of bars: rows has (label, [(speed-up, low, high) or None, ...])
    with an entry for each of the series; low and high may be None."""

    def __init__(self, title, rows, series=("",)):
        self.title = title
        self.rows = [row for row in rows if any(row[1])]
        self.series = series

    def height(self):
        legend = 20 if len(self.series) > 1 else 0
        return 54 + legend + len(self.rows) * (len(self.series) * BAR + GAP)

    def top(self):
        return max(max(v for v in bar if v is not None)
                   for _, bars in self.rows for bar in bars if bar)


def number(x):
    return "%.1f×" % x if x < 9.95 else "%.0f×" % x


def text(x, y, what, css="", anchor="start"):
    return '<text x="%.1f" y="%.1f"%s text-anchor="%s">%s</text>' % (
        x, y, ' class="%s"' % css if css else "", anchor, escape(what))


def line(x1, y1, x2, y2, css):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>' % (
        x1, y1, x2, y2, css)


def draw_panel(panel, x, y, width, top):
    """SVG elements; top is the speed-up at the right end of the axis."""
    out = [text(x, y + 14, panel.title, "panel")]
    y += 26
    if len(panel.series) > 1:
        widths = [32 + 7.2 * len(name) for name in panel.series]
        at = max(x, min(x + LABELS, x + width - sum(widths)))
        for i, name in enumerate(panel.series):
            out.append('<rect x="%.1f" y="%.1f" width="11" height="11" '
                       'class="s%d"/>' % (at, y, i))
            out.append(text(at + 16, y + 10, name))
            at += widths[i]
        y += 20
    left, scale = x + LABELS, (width - LABELS - NUMBERS) / top
    bottom = y + len(panel.rows) * (len(panel.series) * BAR + GAP)
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if top / s <= 7)
    tick = 0
    while tick <= top:
        at = left + tick * scale
        out.append(line(at, y, at, bottom, "grid"))
        out.append(text(at, bottom + 14, "%g×" % tick, "muted", "middle"))
        tick += step
    one = line(left + scale, y, left + scale, bottom, "one")
    for label, bars in panel.rows:
        middle = y + len(bars) * BAR / 2
        out.append(text(left - 8, middle + 4, label, "", "end"))
        for i, bar in enumerate(bars):
            if bar:
                value, low, high = bar
                end = max(value, high or 0, 1)      # right of the dashed line
                out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%d" '
                           'class="s%d"/>' % (left, y + 1, value * scale,
                                              BAR - 2, i))
                if low is not None:
                    for x1, x2, dy in ((low, high, 0), (low, low, 3),
                                       (high, high, 3)):
                        out.append(line(left + x1 * scale, y + BAR / 2 - dy,
                                        left + x2 * scale, y + BAR / 2 + dy,
                                        "whisker"))
                out.append(text(left + end * scale + 6, y + BAR - 3,
                                number(value)))
            y += BAR
        y += GAP
    return out + [one]


def describe(title, panels):
    """The numbers in words."""
    parts = []
    for panel in panels:
        rows = []
        for label, bars in panel.rows:
            values = ("%s%s" % (name + " " if name else "", number(bar[0]))
                      for name, bar in zip(panel.series, bars) if bar)
            rows.append("%s %s" % (label, ", ".join(values)))
        parts.append("%s: %s." % (panel.title, "; ".join(rows)))
    return "%s. %s" % (title, " ".join(parts))


def draw(path, title, panels, caption, columns=2):
    """A chart with the same axis in all panels."""
    panels = [p for p in panels if p.rows]
    if not panels:
        return
    columns = min(columns, len(panels))
    width = (WIDTH - MARGIN * (columns + 1)) / columns
    top = max(1.2, *(p.top() for p in panels))
    caption = [part for paragraph in caption
               for part in textwrap.wrap(paragraph, 140)]
    out, y = [], 64
    for i in range(0, len(panels), columns):
        row = panels[i:i + columns]
        for j, panel in enumerate(row):
            out += draw_panel(panel, MARGIN + j * (width + MARGIN), y, width, top)
        y += max(p.height() for p in row)
    for part in caption:
        y += 15
        out.append(text(MARGIN, y, part, "muted"))
    y += 14
    head = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" '
        'height="%d" role="img" aria-labelledby="t d">' % (WIDTH, y, WIDTH, y),
        '<title id="t">%s</title>' % escape(title),
        '<desc id="d">%s</desc>' % escape(describe(title, panels)),
        "<style>%s</style>" % STYLE,
        '<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>' % (
            WIDTH - 1, y - 1),
        text(MARGIN, 30, title, "title"),
        text(MARGIN, 49, "PostgreSQL's time divided by fmsort's: higher is "
             "better; the dashed line is as fast as PostgreSQL", "muted"),
    ]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(head + out + ["</svg>"]) + "\n")


# ---- CSV files ---------------------------------------------------------------

def read(path):
    """Facts, {name: value}, and rows, {column: value} each.  Facts are comments
    "# name: value" or rows of the part (stage) "environment"."""
    facts, lines = {}, []
    with open(path, newline="", encoding="utf-8") as file:
        for text_line in file:
            if text_line.startswith("#"):
                name, _, value = text_line[1:].partition(":")
                facts.setdefault(name.strip(), value.strip())
            else:
                lines.append(text_line)
    for row in csv.reader(lines):
        if row[0] == "environment":
            name, value = [v for v in row[1:] if v][:2]
            facts.setdefault(name, value)
    return facts, [row for row in csv.DictReader(lines)
                   if "environment" not in row.values()]


def conditions(facts, *sentences):
    """The caption: sentences, and what was measured on."""
    def known(name, pattern, phrase="%s"):
        found = re.match(pattern, facts.get(name, ""))
        return [phrase % found[1]] if found else []

    parts = (known("fmsort", r"([^ ,]+)", "fmsort %s")
             + known("PostgreSQL", r"([^ ,]+)", "PostgreSQL %s")
             + known("processor", r"(.+)") + known("cores", r"(.+)", "%s cores")
             + ["%.0f GB of memory" % (int(mb) / 1024)
                for mb in known("memory", r"([0-9]+)")]
             + known("disk", r"(.+)", "disk %s")
             + known("kernel", r"([^-]+)", "Linux %s"))
    return [" ".join(sentences)] + ([", ".join(parts) + "."] if parts else [])


def orders(facts):
    """The table that was sorted: "7500000 rows, 1047 MB", or its scale factor."""
    if "orders" not in facts:
        return "TPC-H orders at scale factor %s" % re.match(
            r"[0-9.]*", facts.get("scale", "5"))[0]
    return "TPC-H orders, " + re.sub(
        r"^[0-9]+", lambda count: "{:,}".format(int(count[0])), facts["orders"])


def optional(row, column):
    """The number in a column that older files lack, or None."""
    return float(row[column]) if row.get(column) else None


def speedup(stock, ours):
    """(median, least, most) of two (median, min, max) of times"""
    if not stock or not ours:
        return None
    return stock[0] / ours[0], stock[1] / ours[2], stock[2] / ours[1]


def key_name(key):
    return KEYS.get(key, key)


WHISKERS = "Bars are medians, whiskers the range over all rounds."


# ---- charts ------------------------------------------------------------------

def chart_tuplesort(source, out, name):
    """By type of key: in memory, spilled, parallel, memory limited."""
    facts, rows = read(source)
    times = {}
    for row in rows:
        if row["metric"] == "ms":
            cell = row["part"], row["key"], row["work_mem_mb"], row["contender"]
            times[cell] = tuple(float(row[c]) for c in ("median", "min", "max"))

    def panel(title, part, mems, series=("",)):
        keys = dict.fromkeys(k for p, k, m, c in times if p == part)
        return Panel(title, [
            (key_name(key), [speedup(times.get((part, key, mem, "stock")),
                                     times.get((part, key, mem, "fmsort")))
                             for mem in mems]) for key in keys], series)

    def mems(part):
        return sorted({m for p, k, m, c in times if p == part}, key=float)

    middle = mems("free")[len(mems("free")) // 2:][:1]
    held = re.match(r"[0-9]+ MB", facts.get("held to", ""))
    held = "Memory limited to " + held[0] if held else "Memory limited"
    caption = conditions(facts, orders(facts) + ", ordered by one key.", WHISKERS)
    draw(os.path.join(out, name + ".svg"),
         "How much faster fmsort sorts, by type of key",
         [panel("In memory (work_mem %s MB)" % "".join(mems("memory")), "memory",
                mems("memory")),
          panel("Spilled to disk (work_mem %s MB)" % "".join(middle), "free",
                middle),
          panel("Spilled, two parallel workers (%s MB)"
                % "".join(mems("parallel")), "parallel", mems("parallel")),
          panel("Spilled, %s (%s MB)" % (held[0].lower() + held[1:],
                                         "".join(middle)), "held", middle)],
         caption)
    series = ["%s MB" % mem for mem in mems("free")]
    draw(os.path.join(out, name + "-work-mem.svg"),
         "Spilled sorts, by type of key and work_mem",
         [panel("Spilled to disk", "free", mems("free"), series),
          panel(held, "held", mems("held"), series)],
         caption)


DEVICES = {"unlimited": "this machine's disk", "sata": "500 MB/s",
           "cloud": "125 MB/s", "slow": "30 MB/s",
           "warm": "in page cache", "cold": "on disk"}
MEMORY = {"free": "Memory free", "held": "Memory limited to 400 MB"}


def chart_devices(source, out, name):
    """Automatic settings and the best of a grid, by device and memory."""
    facts, rows = read(source)
    series = ["as installed", "best of a grid of settings"]
    panels, grid = {}, {}
    for row in rows:
        if row["stage"] != "final":
            continue
        device, _, memory = row["cell"].partition(", ")
        cell = panels.setdefault(memory, {}).setdefault(
            (device, row["work_mem_mb"]), {})
        times = tuple(float(row[c]) for c in ("median_ms", "min_ms", "max_ms"))
        cell[row["contender"]] = times
        if row["it_by_best"] == "1.000":
            grid[memory, device, row["work_mem_mb"]] = times

    one_mem = len({mem for cells in panels.values() for _, mem in cells}) == 1

    def bars(memory, cell):
        found = panels[memory][cell]
        return [speedup(found.get("stock"), found.get("unknown")),
                speedup(found.get("stock"), grid.get((memory, *cell)))]

    def label(device, mem):
        device = DEVICES.get(device, device)
        return device if one_mem else "%s, %s MB" % (device, mem)

    draw(os.path.join(out, name + ".svg"),
         "Automatic settings beside the best of a grid",
         [Panel(MEMORY.get(memory, memory) or "By where the table is, and work_mem",
                [(label(*cell), bars(memory, cell)) for cell in cells], series)
          for memory, cells in panels.items()],
         conditions(facts, orders(facts) + ", ordered by a date.", WHISKERS))


KINDS = {"int": "integer", "bigint": "bigint", "numeric": "numeric",
         "date": "date", "text_c": "text, C", "text_icu": "text, ICU",
         "two_columns": "two columns", "whole_row": "whole rows"}


def chart_small(source, out, name):
    """Small sorts: by number of rows, four kinds a panel."""
    facts, rows = read(source)
    panels = []
    for mem in dict.fromkeys(row["work_mem"] for row in rows):
        for title, kinds in (
                ("one column", ["int", "date", "numeric", "text_c"]),
                ("other sorts", ["bigint", "text_icu", "two_columns", "whole_row"])):
            cells = {(row["kind"], row["rows"]): tuple(
                float(row[c]) for c in ("ratio", "low", "high"))
                for row in rows if row["work_mem"] == mem}
            kinds = [kind for kind in kinds if any(k == kind for k, _ in cells)]
            counts = dict.fromkeys(r for _, r in cells)
            panels.append(Panel("work_mem %s, %s" % (mem, title), [
                ("{:,} rows".format(int(count)),
                 [cells.get((kind, count)) for kind in kinds])
                for count in counts], [KINDS[kind] for kind in kinds]))
    draw(os.path.join(out, name + ".svg"),
         "Small sorts: processor time, by number of rows and type", panels,
         conditions(facts, "Bars are medians, whiskers their 95 % confidence "
                    "interval."))


LESS = {("bound", "random"): "LIMIT 500,000",
        ("bound", "each row better"): "LIMIT, worst order",
        ("offset", "random"): "OFFSET 3,000,000",
        ("offset", "all rows but a few"): "OFFSET 100,000",
        ("group", "DISTINCT ON clerk"): "DISTINCT ON text",
        ("group", "first row of clerk"): "row_number, text",
        ("group", "DISTINCT ON custkey"): "DISTINCT ON integer",
        ("group", "first row of custkey"): "row_number, integer",
        ("group", "groups of one row"): "DISTINCT ON, unique"}


def chart_less(source, out, name):
    """Queries that need less than all rows in order."""
    facts, rows = read(source)
    cells = {(row["part"], row["cell"], row["work_mem"]):
             (float(row["stock_by_on"]), optional(row, "stock_by_on_low"),
              optional(row, "stock_by_on_high")) for row in rows}
    mems = list(dict.fromkeys(mem for _, _, mem in cells))
    draw(os.path.join(out, name + ".svg"),
         "Queries that need only a part of the sorted rows",
         [Panel("LIMIT, OFFSET, DISTINCT ON, row_number() = 1",
                [(LESS.get(cell, cell[1]),
                  [cells.get((*cell, mem)) for mem in mems])
                 for cell in dict.fromkeys(c[:2] for c in cells)],
                ["work_mem " + mem for mem in mems])],
         conditions(facts, orders(facts) + ".",
                    "Bars are medians of the rounds' ratios%s."
                    % (", whiskers their 95 % confidence interval"
                       if any(low for _, low, _ in cells.values()) else "")))


def chart_parallel(source, out, name):
    """fmsort with one worker and without beside PostgreSQL's best."""
    facts, rows = read(source)
    times = {}
    for row in rows:
        median = float(row["ms"])
        times[row["key"], row["work_mem"], row["contender"]] = (
            median, optional(row, "min") or median,
            optional(row, "max") or median)
    series = ["fmsort, one process", "fmsort, two"]

    def bars(key, mem):
        stock = [times.get((key, mem, c)) for c in ("stock-1", "stock-2")]
        stock = min(filter(None, stock), default=None)
        found = [speedup(stock, times.get((key, mem, c)))
                 for c in ("fmsort-1", "fmsort-2")]
        if all(row.get("min") for row in rows):
            return found
        return [bar and (bar[0], None, None) for bar in found]

    draw(os.path.join(out, name + ".svg"),
         "Parallel sorts, beside PostgreSQL's with one or two workers",
         [Panel("work_mem " + mem,
                [(KEYS[key], bars(key, mem)) for key in KEYS], series)
          for mem in dict.fromkeys(row["work_mem"] for row in rows)],
         conditions(facts, orders(facts) + ".",
                    "Each bar is beside the faster of PostgreSQL's plans with one "
                    "and with two workers."))


SHARDS = {"limit": "LIMIT 1000", "offset": "OFFSET", "count": "count(*)",
          "all": "every row"}


def chart_shards(source, out, name):
    """Rows of other servers, beside PostgreSQL's Merge Append."""
    facts, rows = read(source)
    sizes = list(dict.fromkeys(row["fetch_size"] for row in rows))
    cells = {(row["query"], row["fetch_size"]): (float(row["ratio"]), None, None)
             for row in rows}
    draw(os.path.join(out, name + ".svg"),
         "Sorted shards, beside PostgreSQL's Merge Append",
         [Panel("By query and fetch_size of postgres_fdw",
                [(SHARDS.get(query, query),
                  [cells.get((query, size)) for size in sizes])
                 for query in dict.fromkeys(q for q, _ in cells)],
                ["{:,} rows".format(int(size)) for size in sizes])],
         conditions(facts, "Shards: %s. All servers on one machine."
                    % facts.get("shards", "")))


CHARTS = [("tuplesort", chart_tuplesort), ("tuplesort-refused", chart_tuplesort),
          ("tuplesort-unlocked", chart_tuplesort), ("zoo", chart_devices),
          ("auto", chart_devices), ("less", chart_less),
          ("parallel", chart_parallel), ("shards", chart_shards)] + \
    [("small/postgresql-%d" % major, chart_small) for major in range(15, 20)]


def main(directory, out=None):
    for name, chart in CHARTS:
        source = os.path.join(directory, name + ".csv")
        if os.path.exists(source):
            target = out or directory
            os.makedirs(os.path.dirname(os.path.join(target, name)), exist_ok=True)
            chart(source, target, name)


if __name__ == "__main__":
    main(*sys.argv[1:])
