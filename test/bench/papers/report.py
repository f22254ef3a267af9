"""Medians of a CSV file of the papers' experiments, as a table or a chart.

    report.py table CSV --x COLUMN --series COLUMN --y COLUMN [--where ...]
    report.py chart CSV --x COLUMN --series COLUMN --y COLUMN[,COLUMN]
              [--kind lines|bars|stacked] [--panel "TITLE: name=value ..."]...
              [--title T] [--xlabel T] [--ylabel T] [--scale FACTOR]
              [--log [BASE]] [--mark Y]

Rows that agree in --x, --series and the filter are rounds: their median counts.
Without --series, each column of --y is one; a-b is a difference of columns.
--where name=value[,name=value] keeps rows; value may be a|b.  A chart has a
panel for each --panel, whose filter comes on top.  --kind lines puts the
numbers of --x on an axis; bars and stacked take them as names, and stacked
piles the columns of --y up.  --scale multiplies --y (0.001: ms to s).  --log
makes both axes logarithmic, with ticks at the powers of BASE (2) along x and of
2 along y.  --mark draws a dashed line across.

table prints Markdown.  chart prints what gnuplot turns into SVG.
"""

import argparse
import csv
import statistics
import sys

COLOURS = ["#444444", "#e6550d", "#9ecae1", "#6baed6", "#4292c6", "#2171b5",
           "#08519c", "#08306b", "#31a354", "#756bb1"]


def ordered(values):
    """Without repetitions, in order of appearance."""
    return list(dict.fromkeys(values))


def by_number(values):
    """As numbers, if they are; else as they come."""
    values = ordered(values)
    try:
        return sorted(values, key=float)
    except ValueError:
        return values


def by_name(values):
    """In order of appearance, but fmsort-8 goes before fmsort-16."""
    def number(name):
        word, _, last = name.rpartition("-")
        return (word, int(last)) if last.isdigit() else (name, 0)

    values = ordered(values)
    first = {}
    for name in values:
        first.setdefault(number(name)[0], len(first))
    return sorted(values, key=lambda name: (first[number(name)[0]],
                                            number(name)[1]))


def read(path):
    with open(path) as file:
        return list(csv.DictReader(line for line in file
                                   if not line.startswith("#")))


def keep(rows, where):
    for condition in filter(None, where.replace(",", " ").split()):
        name, value = condition.split("=", 1)
        rows = [row for row in rows if row[name] in value.split("|")]
    return rows


def value(row, column):
    """A column, or a difference of two: "total_ms-input_ms"."""
    first, *others = [row[name] for name in column.split("-")]
    return float(first) - sum(map(float, others)) if first else None


def median(rows, column, scale):
    values = [value(row, column) for row in rows]
    values = [each for each in values if each is not None]
    return statistics.median(values) * scale if values else None


def cell(rows, args, x, series):
    """Without --series, each column of --y is one."""
    chosen = [row for row in rows if row[args.x] == x
              and (not args.series or row[args.series] == series)]
    return median(chosen, args.y if args.series else series, args.scale)


def pile(rows, args, x, series):
    chosen = [row for row in rows
              if row[args.x] == x and row[args.series] == series]
    return [median(chosen, column, args.scale)
            for column in args.y.split(",")]


def shown(value):
    return "-" if value is None else "%.4g" % value if value < 1000 \
        else "%.0f" % value


def names_of(rows, args):
    xs = by_number(row[args.x] for row in rows)
    if not args.series:
        return xs, args.y.split(",")
    there = {row[args.series] for row in rows}
    return xs, [name for name in args.names if name in there]


def print_table(rows, args):
    rows = keep(rows, args.where)
    xs, series = names_of(rows, args)
    print("| %s | %s |" % (args.x, " | ".join(series)))
    print("|" + " --- |" * (len(series) + 1))
    for x in xs:
        print("| %s | %s |" % (x, " | ".join(
            shown(cell(rows, args, x, name)) for name in series)))


# ---- charts -----------------------------------------------------------------

def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def print_block(name, lines):
    print("$%s << END" % name)
    for line in lines:
        print(" ".join(line))
    print("END")


def print_lines(number, rows, args):
    """A line a series."""
    xs, series = names_of(rows, args)
    print_block("p%d" % number,
                [[x] + [shown(cell(rows, args, x, name))
                        for name in series] for x in xs])
    return "plot " + ", ".join(
        "$p%d using 1:%d with linespoints linewidth 2 pointsize 0.6 "
        "linecolor rgb %s title %s"
        % (number, i + 2, quoted(COLOURS[i % len(COLOURS)]), quoted(name))
        for i, name in enumerate(series))


def print_bars(number, rows, args):
    """A group an x, a bar a series."""
    xs, series = names_of(rows, args)
    print_block("p%d" % number,
                [['"%s"' % x] + [shown(cell(rows, args, x, name))
                                 for name in series] for x in xs])
    return ("set style histogram clustered gap 1; plot " + ", ".join(
        "$p%d using %d:xtic(1) with histograms linecolor rgb %s title %s"
        % (number, i + 2, quoted(COLOURS[i % len(COLOURS)]), quoted(name))
        for i, name in enumerate(series)))


def print_stacked(number, rows, args):
    """A pile an x and series, named below it, with a gap between the x."""
    xs, series = names_of(rows, args)
    columns = args.y.split(",")
    lines = []
    for x in xs:
        for name in series:
            values = pile(rows, args, x, name)
            if None not in values:
                lines.append(['"%s  %s"' % (name, x)]
                             + list(map(shown, values)))
        lines.append(['""'] + ["0"] * len(columns))
    print_block("p%d" % number, lines[:-1])
    return ("set style histogram rowstacked; set xtics rotate by -90; "
            "set bmargin 13; plot " + ", ".join(
                "$p%d using %d:xtic(1) with histograms linecolor rgb %s "
                "title %s" % (number, i + 2, quoted(COLOURS[(5, 1, 8)[i % 3]]),
                              quoted(column.removesuffix("_ms")))
                for i, column in enumerate(columns)))


KINDS = {"lines": print_lines, "bars": print_bars, "stacked": print_stacked}


def print_chart(rows, args):
    rows = keep(rows, args.where)
    panels = []
    for panel in args.panel or [": "]:
        title, where = panel.rsplit(":", 1)
        chosen = keep(rows, where)
        if chosen:
            panels.append((title, chosen))
    if not panels:
        sys.exit("report.py: no rows to draw")
    columns = 1 if len(panels) == 1 else 2
    lines = (len(panels) + columns - 1) // columns
    height = 520 if args.kind == "stacked" else 400
    print("set terminal svg size %d,%d noenhanced font 'sans-serif,12' "
          "background 'white'" % (760 * columns, height * lines + 40))
    print("set datafile missing '-'")
    print("set multiplot layout %d,%d title %s"
          % (lines, columns, quoted(args.title)))
    print("set grid ytics linecolor '#dddddd'\nset border 3\n"
          "set tics nomirror\nset style fill solid 0.85 noborder\n"
          "set key outside right top Left reverse\n"
          "set yrange [0:*]\nset xlabel %s\nset ylabel %s"
          % (quoted(args.xlabel or args.x), quoted(args.ylabel or args.y)))
    if args.log:
        print("set logscale x %d\nset logscale y 2\nset yrange [*:*]"
              % args.log)
    if args.mark is not None:
        print("set arrow from graph 0, first {0} to graph 1, first {0} nohead "
              "dashtype 2 linecolor '#444444'".format(args.mark))
    for number, (title, chosen) in enumerate(panels):
        print("set title %s" % quoted(title))
        print(KINDS[args.kind](number, chosen, args))
    print("unset multiplot")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["table", "chart"])
    parser.add_argument("csv")
    parser.add_argument("--x", required=True)
    parser.add_argument("--series", default="")
    parser.add_argument("--y", required=True)
    parser.add_argument("--where", default="")
    parser.add_argument("--panel", action="append")
    parser.add_argument("--kind", choices=KINDS, default="lines")
    parser.add_argument("--title", default="")
    parser.add_argument("--xlabel", default="")
    parser.add_argument("--ylabel", default="")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--log", type=int, nargs="?", const=2)
    parser.add_argument("--mark", type=float)
    args = parser.parse_args()
    rows = read(args.csv)
    # every panel in the same order and colours
    args.names = by_name(row[args.series] for row in rows) \
        if args.series else []
    if args.command == "table":
        print_table(rows, args)
    else:
        print_chart(rows, args)


if __name__ == "__main__":
    main()
