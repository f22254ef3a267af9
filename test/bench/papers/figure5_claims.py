"""Figure 5 as Markdown: run formation of a traditional mergesort and of FMsort
in the same blocks, and what of it is the block read order.  Medians.

    figure5_claims.py CSV
"""

import collections
import sys
from statistics import median

from claims import order_block_ns, order_percents, read, spread


def medians(rows):
    return {"formation": median(float(r["run_formation_ms"]) for r in rows),
            "order": median(float(r["block_order_ms"]) for r in rows),
            "percent": median(order_percents(rows)),
            "block_ns": median(order_block_ns(rows))}


def main(path):
    cells = collections.defaultdict(list)
    for row in read(path):
        cells[row["data"], int(row["runs"]), row["contender"]].append(row)
    found = {key: medians(rows) for key, rows in cells.items()}
    ours = {key[:2]: cell for key, cell in sorted(found.items())
            if key[2] == "fmsort-base"}

    print("\n| data | runs | traditional, ms | FMsort | of it the block read "
          "order | % | ns a block |")
    print("|" + " --- |" * 7)
    for (data, runs), cell in ours.items():
        print("| %s | %d | %.0f | %.0f | %.1f | %.2f | %.0f |" % (
            data, runs, found[data, runs, "traditional"]["formation"],
            cell["formation"], cell["order"], cell["percent"],
            cell["block_ns"]))
    percents = [cell["percent"] for cell in ours.values()]
    print("\n- the block read order takes %s %% of run formation, at most 1 in "
          "%d of %d" % (spread(percents, 2), sum(p <= 1 for p in percents),
                        len(percents)))


if __name__ == "__main__":
    main(sys.argv[1])
