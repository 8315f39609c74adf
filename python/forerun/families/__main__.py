"""Prints sampled configurations as lines of JSON: python -m forerun.families --count 1000 --seed 1 > plan.jsonl"""

from __future__ import annotations

import argparse
import sys
from typing import List, Optional

from . import FAMILIES, TARGETS, USUAL, default_counts, plan


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.families", description=__doc__)
    parser.add_argument("--count", type=int, required=True, help="how many configurations")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same configurations (default 0)")
    parser.add_argument("--families", default="", help="separated by commas; default: all usual ones, more RandWire")
    parser.add_argument("--target", choices=TARGETS, help="where the bottleneck is sought; default: a mixture")
    parser.add_argument("--prefix", default="h200", help="what ids begin with (default h200)")
    options = parser.parse_args(arguments)
    families = [name.strip() for name in options.families.split(",") if name.strip()] or list(USUAL)
    for family in families:
        if family not in FAMILIES:
            parser.error(f"no family is called {family!r}; there are {', '.join(FAMILIES)}")
    if options.count < 0:
        parser.error("--count is below 0")
    for configuration in plan(options.seed, default_counts(options.count, families), options.prefix, options.target):
        print(configuration.line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
