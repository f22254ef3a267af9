"""Tables 1 to 3 of Flash mergesort's paper beside what was measured, Markdown.

    flash_claims.py CSV DRIVE_CSV

The paper's numbers are those of its Tables 2 (Data A) and 3 (Micron P300).
"""

import collections
import csv
import statistics
import sys

SINGLE, MULTI, FLASH = "single_block", "multi_block", "flash"
LEAST_MS = 0.001
OURS = ("fmsort", "fmsort-base", "fmsort-direct", "fmsort-auto")

# Table 2: MB -> blocks an operation (multi, flash), operations (single, multi,
# flash).  The paper prints 235 at 2.3 MB, but 26879 blocks in 132 operations
# are 205 each, which is also 296 blocks less 91 runs.
PAPER_READS = {
    "1.3": (1.05, 8, 26948, 26276, 3350),
    "2.3": (3.25, 205, 26879, 8408, 132),
    "3.3": (6.83, 360, 26853, 4086, 76),
    "4.3": (11.27, 503, 26852, 2423, 55),
    "5.3": (17.00, 640, 26854, 1615, 43),
    "6.3": (23.76, 774, 26852, 1142, 36),
    "7.3": (32.28, 907, 26845, 851, 31),
    "8.3": (40.92, 1038, 26843, 660, 27),
    "9.3": (51.83, 1169, 26846, 521, 24),
    "10.3": (62.86, 1299, 26845, 429, 22),
}

# Table 3, P300: data -> MB -> runs, Spd-S, Spd-M
PAPER_SPEEDUPS = {
    "A": {"1.3": (160, 1.764, 1.779), "2.3": (91, 2.031, 1.357),
          "3.3": (64, 2.161, 1.200), "4.3": (49, 2.109, 1.091),
          "5.3": (40, 2.225, 1.094), "6.3": (34, 2.131, 1.052),
          "7.3": (29, 2.155, 1.045), "8.3": (26, 2.198, 1.054),
          "9.3": (23, 2.221, 1.016), "10.3": (21, 2.087, 0.978)},
    "B": {"3": (349, 1.973, 1.966), "4": (322, 2.019, 1.564),
          "5": (299, 1.962, 1.332), "6": (280, 2.085, 1.241),
          "7": (262, 2.084, 1.183), "8": (247, 2.139, 1.162),
          "9": (233, 2.186, 1.128), "10": (221, 2.186, 1.110),
          "11": (210, 2.157, 1.072), "12": (200, 2.168, 1.056)},
    "C": {"4.2": (419, 2.074, 2.052), "5.2": (399, 2.141, 1.813),
          "6.2": (381, 2.133, 1.534), "7.2": (364, 2.136, 1.379),
          "8.2": (349, 2.145, 1.292), "9.2": (335, 2.143, 1.227),
          "10.2": (322, 2.173, 1.180), "11.2": (311, 2.131, 1.126),
          "12.2": (299, 2.156, 1.105), "13.2": (289, 2.205, 1.107)},
}


def read(path):
    with open(path) as file:
        return list(csv.DictReader(line for line in file
                                   if not line.startswith("#")))


def medians(rows):
    """(data, MB) -> contender -> column -> median"""
    grouped = collections.defaultdict(list)
    for row in rows:
        grouped[row["data"], row["size_mb"], row["contender"]].append(row)
    cells = collections.defaultdict(dict)
    for (data, size, contender), same in grouped.items():
        cells[data, size][contender] = {
            column: statistics.median(float(row[column]) for row in same)
            for column in same[0]
            if column not in ("data", "contender", "work_mem")}
    return {place: cell for place, cell in cells.items()
            if {SINGLE, MULTI, FLASH} <= set(cell)
            and cell[FLASH]["merge_passes"] == 1}


def times(slow, fast):
    """How many times as fast.  Nothing measured counts as what the CSV file
    cannot show less than: tiny data may not block a merge at all."""
    return max(slow, LEAST_MS) / max(fast, LEAST_MS)


def sizes(cells, data):
    return sorted((size for found, size in cells if found == data), key=float)


def table(heads, rows):
    print("\n| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def print_data(cells, names):
    print("\nTable 1: the data")
    rows = []
    for data in names:
        first = cells[data, sizes(cells, data)[0]][SINGLE]
        rows.append((data, "%.0f MB" % (first["blocks"] * first["block_size"]
                                        / 1e6),
                     "%.0f" % first["blocks"], sizes(cells, data)[0] + " MB"))
    table(("data", "in runs", "blocks", "smallest input buffer"), rows)



def print_reads(cells, data):
    print("\nTable 2: read operations of the merge, data %s (the paper's, for "
          "data A)" % data)
    rows = []
    for size in sizes(cells, data):
        cell = cells[data, size]
        known = PAPER_READS.get(size) if data == "A" else None
        row = [size, "%.0f" % cell[FLASH]["runs"]]
        for number, name in enumerate((MULTI, FLASH)):
            each = cell[name]["blocks"] / cell[name]["read_operations"]
            row.append("%.2f" % each + (" (%g)" % known[number]
                                        if known else ""))
        for number, name in enumerate((SINGLE, MULTI, FLASH)):
            row.append("%.0f" % cell[name]["read_operations"]
                       + (" (%d)" % known[2 + number] if known else ""))
        rows.append(row)
    table(("MB", "runs", "blocks an operation, multi", "flash",
           "operations, single", "multi", "flash"), rows)


def print_speedups(cells, data):
    print("\nTable 3: data %s; the paper's (P300) in brackets" % data)
    rows = []
    for size in sizes(cells, data):
        cell = cells[data, size]
        known = PAPER_SPEEDUPS[data].get(size)
        flash = cell[FLASH]
        row = [size, "%.0f" % flash["runs"] +
               (" (%d)" % known[0] if known else "")]
        for number, name in enumerate((SINGLE, MULTI)):
            row.append("%.2f" % times(cell[name]["total_ms"], flash["total_ms"])
                       + (" (%.2f)" % known[1 + number] if known else ""))
            row.append("%.2f" % times(cell[name]["blocked_ms"],
                                      flash["blocked_ms"]))
        for name in OURS:
            row.append("%.2f" % times(flash["total_ms"], cell[name]["total_ms"])
                       if name in cell else "-")
        rows.append(row)
    table(("MB", "runs", "Spd-S", "read time, S", "Spd-M", "read time, M",
           *("flash by " + name for name in OURS)), rows)


def print_best(cells):
    for name in (SINGLE, MULTI):
        for column, what in (("blocked_ms", "read time"),
                             ("merge_ms", "merge phase"),
                             ("total_ms", "whole sort")):
            found = max((times(cell[name][column], cell[FLASH][column]), place)
                        for place, cell in cells.items())
            print("- flash beside %s, %s: up to %.2f times as fast (data %s, "
                  "%s MB)" % (name, what, found[0], *found[1]))
    for name in OURS:
        for column, what in (("total_ms", "whole sort"),
                             ("merge_ms", "merge phase")):
            found = [times(cell[FLASH][column], cell[name][column])
                     for cell in cells.values() if name in cell]
            if not found:
                continue
            print("- %s beside flash, %s: at least as fast in %d of %d cells, "
                  "%.2f to %.2f times as fast"
                  % (name, what, sum(each >= 1 for each in found), len(found),
                     min(found), max(found)))


def print_drive(drive):
    """What the ratios could be if nothing but the drive took time."""
    alone = drive[8192, 1]
    best, depth = max((rate, depth) for (block, depth), rate in drive.items()
                      if block == 8192)
    print("- the drive alone, random reads: %.0f MB/s with one block of 8 KB "
          "at a time, %.0f with %d at once: %.2f times as much"
          % (alone, best, depth, best / alone))
    for block, depth in sorted(drive):
        if depth == 1 and block > 8192:
            print("- ... one read of %d blocks at a time: %.0f MB/s, so many "
                  "blocks at once gain %.2f times over that"
                  % (block // 8192, drive[block, 1], best / drive[block, 1]))


def main(path, drive_path):
    cells = medians(read(path))
    drive = {(int(row["block_bytes"]), int(row["queue_depth"])):
             float(row["mb_per_s"]) for row in read(drive_path)}
    names = list(dict.fromkeys(data for data, size in sorted(cells)))

    print_data(cells, names)
    for data in names:
        print_reads(cells, data)
    for data in names:
        print_speedups(cells, data)
    print()
    print_best(cells)
    print_drive(drive)


if __name__ == "__main__":
    main(*sys.argv[1:])
