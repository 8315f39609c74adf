#!/usr/bin/env python3
"""Counts what a build's tests did, case by case, and says why any was skipped.

usage: summary.py BUILD-DIR     prints "PASSED FAILED SKIPPED" on one line; failures and reasons go to standard error

Reads BUILD-DIR/tests.xml, which ctest writes, and cases/NAME.xml beside it, which each GoogleTest program writes. A program
that failed without writing its cases (it crashed) counts as one failure.
"""

from __future__ import annotations

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

Skips = dict[str, list[str]]


def count_cases(path: pathlib.Path, skips: Skips) -> tuple[int, int, int]:
    """Counts a GoogleTest report: passed, failed, skipped."""
    passed = failed = skipped = 0
    for case in tree.parse(path).getroot().iter("testcase"):
        if case.get("status") != "run":
            continue
        skip = case.find("skipped")
        if case.find("failure") is not None:
            failed += 1
        elif skip is not None:
            skipped += 1
            lines = [line for line in (skip.get("message") or "").splitlines() if line.strip()]
            skips[lines[-1] if lines else "no reason given"].append(f"{case.get('classname')}.{case.get('name')}")
        else:
            passed += 1
    return passed, failed, skipped


def skip_reason(case: tree.Element) -> str:
    """Finds the reason in the output of a test that is no GoogleTest program."""
    output = "".join(node.text or "" for node in case.iter("system-out"))
    for pattern in (r"SKIPPED \[\d+\] [^:]+:(?:\d+:)? *(.+)", r"(?im)^skipped: *(.+)"):
        found = re.search(pattern, output)
        if found:
            return found.group(1).strip()
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


def count(folder: pathlib.Path) -> tuple[int, int, int]:
    skips: Skips = collections.defaultdict(list)
    passed = failed = skipped = 0
    for case in tree.parse(folder / "tests.xml").getroot().findall("testcase"):
        name = case.get("name") or ""
        report = folder / "cases" / f"{name}.xml"
        broken = case.find("failure") is not None or case.get("status") != "run"
        if report.is_file() and report.stat().st_size > 0:
            p, f, s = count_cases(report, skips)
            if broken and f == 0:
                print(f"failed: {name}: its cases passed, the program did not end well", file=sys.stderr)
                f = 1
            passed, failed, skipped = passed + p, failed + f, skipped + s
        elif case.find("skipped") is not None:
            skipped += 1
            skips[skip_reason(case)].append(name)
        elif broken:
            print(f"failed: {name}", file=sys.stderr)
            failed += 1
        else:
            passed += 1
    for reason, names in sorted(skips.items()):
        print(f"skipped {len(names)}: {reason}: {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}", file=sys.stderr)
    return passed, failed, skipped


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(*count(pathlib.Path(sys.argv[1])))
