"""The block read order in percent of run formation, by the rate that writes
are held to, as Markdown: medians, the least and the most.

    paced_claims.py CSV
"""

import collections
import sys
from statistics import median

from claims import order_block_ns, order_percents, read, spread


def main(path):
    cells = collections.defaultdict(list)
    for row in read(path):
        cells[int(row["mb_per_s"]), int(row["block_size"]),
              row["contender"]].append(row)
    print("\n| writes held to | blocks | | run formation, ms | block read "
          "order, % | ns a block |")
    print("|" + " --- |" * 6)
    for (rate, block, contender), rows in sorted(cells.items()):
        formation = [float(r["run_formation_ms"]) for r in rows]
        print("| %s | %d bytes | %s | %s | %s | %.0f |" % (
            "%d MB/s" % rate if rate else "not held", block, contender,
            spread(formation, 0), spread(order_percents(rows), 2),
            median(order_block_ns(rows))))


if __name__ == "__main__":
    main(sys.argv[1])
