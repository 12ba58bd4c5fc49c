"""``python -m benchmarks``: all benchmarks, or those that are named."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks import gpu, grid, overhead, phases, rivals, size, start
from benchmarks.surroundings import RESULTS, surroundings

LONG = ("gpu", "grid")
"""Run only when they are named: for a GPU; three quarters of an hour with nothing else beside."""
PARTS = ("start", "size", "overhead", "phases", "rivals")


def main() -> int:
    """Run, print, keep; return 1 when a bound is known to be broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="under two minutes, wide intervals")
    parser.add_argument("--pure", action="store_true", help="overhead: of the hooks in Python")
    parser.add_argument(
        "--rows",
        action="append",
        metavar="WORDS",
        help="overhead, grid: rows that begin so (repeatable)",
    )
    parser.add_argument(
        "--rivals-dir",
        type=Path,
        default=rivals.cache_folder(),
        help="where the other tools' environments are kept (default: %(default)s)",
    )
    args = parser.parse_args()
    unknown = sorted(set(args.parts) - {*PARTS, *LONG})
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}: {', '.join((*PARTS, *LONG))}")
    chosen = args.parts or PARTS
    begun = time.monotonic()
    for name, value in surroundings().items():
        print(f"  {name}: {value}")
    held = True
    if "start" in chosen:
        held = start.run(args.quick) and held
    if "size" in chosen:
        held = size.run(args.quick) and held
    if "overhead" in chosen:
        held = overhead.run(args.quick, args.pure, args.rows) and held
    if "phases" in chosen:
        phases.run(args.quick)
    if "rivals" in chosen:
        rivals.run(args.quick, args.rivals_dir)
    if "gpu" in args.parts:
        gpu.run(args.quick)
    if "grid" in args.parts:
        grid.run(args.rows)
    print(f"\n  {time.monotonic() - begun:.0f} s; results in {RESULTS}")
    if not held:
        print("  a bound is broken: see the columns that say no", file=sys.stderr)
    return 0 if held else 1


sys.exit(main())
