"""What FMsort's paper claims, beside what was measured, as Markdown.

    claims.py FMSORT_CSV DRIVE_CSV SORT_ALONE_CSV

For every data set and base block: medians of the merge phase, and beside each
the time that the drive alone takes for the same requests (fio: random reads of
that block size, so many at once).  Where the two are close the drive decides
and no merge could be faster; where another contender's requests are served
faster, its merge is.  So with the block read order: beside what it takes stands
what sorting as many first keys takes that are in memory already.
"""

import collections
import csv
import os
import statistics
import sys

OTHERS = ("traditional", "double_buffering")


def read(path):
    with open(path) as file:
        return list(csv.DictReader(line for line in file
                                   if not line.startswith("#")))


def depth_of(row):
    """Requests under way at once."""
    if row["contender"] == "traditional":
        return 1
    if row["contender"] == "double_buffering":
        return int(row["runs_formed"])
    return int(row["assist_blocks"])


def is_wide(contender):
    """FMsort with 8 assist blocks or more."""
    return contender.startswith("fmsort-") and \
        int(contender.split("-")[1]) >= 8


def order_percents(rows):
    """What the block read order takes, in percent of run formation."""
    return [100 * float(r["block_order_ms"]) / float(r["run_formation_ms"])
            for r in rows]


def order_block_ns(rows):
    """... and in nanoseconds a block."""
    return [1e6 * float(r["block_order_ms"]) / int(r["blocks"]) for r in rows]


class Cells:
    """(data, base block) -> runs -> contender -> medians"""

    def __init__(self, rows, drive, sort_alone):
        grouped = collections.defaultdict(list)
        for row in rows:
            if row["merge_passes"] == "1":
                grouped[row["data"], int(row["base_block"]), int(row["runs"]),
                        row["contender"]].append(row)
        self.cells = collections.defaultdict(
            lambda: collections.defaultdict(dict))
        for (data, base, runs, contender), same in grouped.items():
            first = same[0]
            rate = drive.get((int(first["block_size"]), depth_of(first)))
            self.cells[data, base][runs][contender] = {
                "merge": statistics.median(float(r["merge_ms"])
                                           for r in same),
                "alone": rate and float(first["bytes_read"]) / rate / 1000,
                "order": statistics.median(order_percents(same)),
                "block_ns": statistics.median(order_block_ns(same)),
                "percent_ns": statistics.median(
                    1e4 * float(r["run_formation_ms"]) / int(r["blocks"])
                    for r in same),
                "sort_ns": sort_alone.get((int(first["blocks"]),
                                           int(first["runs_formed"])))}


def print_panel(name, by_runs):
    contenders = list(dict.fromkeys(
        c for cell in by_runs.values() for c in cell))
    contenders.sort(key=lambda c: (c not in OTHERS, OTHERS.index(c)
                                   if c in OTHERS else int(c.split("-")[1])))
    print("\nData %s, base block %d: merge ms (the drive alone)\n" % name)
    print("| runs | " + " | ".join(contenders) + " |")
    print("|" + " --- |" * (len(contenders) + 1))
    for runs, cell in sorted(by_runs.items()):
        shown = []
        for contender in contenders:
            found = cell.get(contender)
            if not found:
                shown.append("-")
            elif found["alone"]:
                shown.append("%.0f (%.0f)" % (found["merge"], found["alone"]))
            else:
                shown.append("%.0f" % found["merge"])
        print("| %d | %s |" % (runs, " | ".join(shown)))


def ratio_text(ratio):
    return "-" if ratio is None else "%.2f" % ratio


def all_cells(cells):
    for name, by_runs in cells.items():
        for runs, cell in by_runs.items():
            yield "data %s, base block %d, %d runs" % (*name, runs), cell


def print_speedups(cells):
    for other in OTHERS:
        pairs = [(cell[other], cell[c], where, c)
                 for where, cell in all_cells(cells) if other in cell
                 for c in cell if is_wide(c)]
        found = [(theirs["merge"] / mine["merge"], where, c)
                 for theirs, mine, where, c in pairs]
        alone = [theirs["alone"] / mine["alone"]
                 for theirs, mine, _, _ in pairs
                 if theirs["alone"] and mine["alone"]]
        if found:
            print("- up to %.2f times as fast as %s (%s, %s); the drive alone, "
                  "with the same requests, up to %s times"
                  % (max(found)[0], other.replace("_", " "), max(found)[2],
                     max(found)[1], ratio_text(max(alone, default=None))))


def print_fastest(cells):
    """In how many cells is each one with >= 8 assist blocks the fastest, and
    is that what the drive lets expect?"""
    total = wins = explained = 0
    for _, cell in all_cells(cells):
        for contender in filter(is_wide, cell):
            for other in OTHERS:
                if other not in cell:
                    continue
                total += 1
                mine, theirs = cell[contender], cell[other]
                if mine["merge"] <= theirs["merge"]:
                    wins += 1
                elif mine["alone"] and theirs["alone"] and \
                        theirs["alone"] < mine["alone"]:
                    explained += 1
    print("- with 8 or more assist blocks faster than each of the others in "
          "%d of %d comparisons; in %d of the other %d the drive alone serves "
          "the other's requests faster" % (wins, total, explained,
                                           total - wins))


def slowest_by_fastest(found, what):
    times = [cell[what] for cell in found]
    return max(times) / min(times) if all(times) else None


def print_steadiness(cells):
    for name, by_runs in cells.items():
        lines = collections.defaultdict(list)
        for cell in by_runs.values():
            for contender, found in cell.items():
                lines[contender].append(found)
        steady = ", ".join("%s %s (%s)" % (
            c, *(ratio_text(slowest_by_fastest(found, what))
                 for what in ("merge", "alone")))
            for c, found in lines.items() if len(found) > 1)
        if steady:
            print("- data %s, base block %d, slowest by fastest over the "
                  "numbers of runs (the drive alone): %s" % (*name, steady))


def spread(values, digits=1):
    return "%.*f (%.*f to %.*f)" % (
        digits, statistics.median(values), digits, min(values), digits,
        max(values))


def print_order(cells):
    noted = [found["order"] for _, cell in all_cells(cells)
             for c, found in cell.items() if c == "traditional"]
    if noted:
        print("- block read order, in percent of run formation: noting first "
              "keys %s" % spread(noted))
    for base in sorted({base for _, base in cells}, reverse=True):
        wide = [found for (_, at), by_runs in cells.items() if at == base
                for cell in by_runs.values()
                for c, found in cell.items() if is_wide(c)]
        if not wide:
            continue
        missed = [found for found in wide if found["order"] > 1]
        sorts = [found for found in wide if found["sort_ns"]]
        print("- base block %d: with putting them in order, which the merge "
              "does, %s %%; at most 1 in %d of %d cells; ns a block %s, where "
              "1 %% is %s" % (base, spread([f["order"] for f in wide], 2),
                             len(wide) - len(missed), len(wide),
                             spread([f["block_ns"] for f in wide], 0),
                             spread([f["percent_ns"] for f in wide], 0)))
        if sorts:
            print("- base block %d: sorting as many keys in memory, alone, ns "
                  "a block %s; this is more than 1 %% in %d of %d cells, in "
                  "%d of the %d above" % (
                      base, spread([f["sort_ns"] for f in sorts], 0),
                      sum(f["sort_ns"] > f["percent_ns"] for f in sorts),
                      len(sorts),
                      sum(f["sort_ns"] > f["percent_ns"] for f in missed
                          if f["sort_ns"]), len(missed)))


def main(fmsort_csv, drive_csv, sort_alone_csv):
    drive = {(int(row["block_bytes"]), int(row["queue_depth"])):
             float(row["mb_per_s"]) for row in read(drive_csv)}
    # older results do not have it
    sort_alone = {(int(row["keys"]), int(row["runs"])):
                  float(row["ns_per_key"]) for row in read(sort_alone_csv)
                  } if os.path.exists(sort_alone_csv) else {}
    cells = Cells(read(fmsort_csv), drive, sort_alone).cells

    for name, by_runs in cells.items():
        print_panel(name, by_runs)
    print()
    for part in (print_speedups, print_fastest, print_steadiness,
                 print_order):
        part(cells)


if __name__ == "__main__":
    main(*sys.argv[1:])
