"""Runs the commands that README.md and docs/**/*.md show, so that documentation cannot drift from the program.

A fenced block counts when the line before it is `<!-- test -->`. In it, a line `$ command` is run with bash in the source
tree, with `build/forerun` (or plain `forerun`) standing for the program under test; the lines up to the next `$` are the
output it must print, standard error included. The program is deterministic, so lines must match exactly, except that
`...` alone stands for any lines and `...` within a line for any text. No lines: any output. The exit code must be 0, or N
where the command ends in `# exit N`. Links and sources that a page names must be there. A
command that names $FORERUN_DATASETS is passed over where that is not set.

usage: readme_test.py PROGRAM SOURCE-DIR | readme_test.py --update PROGRAM SOURCE-DIR | readme_test.py --self-check
--update writes what is printed now into the pages, where it differs: after times have changed, for a look at the difference.
"""

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MARK = "<!-- test -->"


class Step:
    def __init__(self, place, command):
        self.place = place
        self.command = command
        self.expected = []
        self.first = 0  # line of the page, from 0, where the output begins
        exit_mark = re.search(r"#\s*exit\s+(\d+)\s*$", command)
        self.exit_code = int(exit_mark.group(1)) if exit_mark else 0


def steps_of(path):
    """The commands of a Markdown file's marked blocks, in order."""
    steps, marked, fence = [], False, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if fence is None:
            opening = re.match(r"(`{3,})\w*\s*$", line)
            if opening and marked:
                fence = opening.group(1)
                step = None
            if line.strip():
                marked = line.strip() == MARK
        elif line.strip() == fence:
            fence = None
        elif line.startswith("$ "):
            step = Step(f"{path.name}:{number}", line[2:])
            steps.append(step)
        elif step is not None and step.command.endswith("\\"):
            step.command = step.command[:-1] + line.strip()
        elif step is not None:
            step.first = step.first or number - 1
            step.expected.append(line)
    return steps


def line_pattern(line):
    return re.compile(".*".join(re.escape(part) for part in line.split("...")) + r"\Z")


def matches(expected, actual):
    """Whether the output has the shown lines; trailing blanks and blank lines at the end do not count."""
    expected = "\n".join(line.rstrip() for line in expected).rstrip().split("\n")
    actual = "\n".join(line.rstrip() for line in actual).rstrip().split("\n")
    if expected == [""]:
        return True
    # reachable[j]: the expected lines so far account for the first j actual lines.
    reachable = {0}
    for line in expected:
        if line.strip() == "...":
            reachable = set(range(min(reachable), len(actual) + 1)) if reachable else set()
        else:
            pattern = line_pattern(line)
            reachable = {j + 1 for j in reachable if j < len(actual) and pattern.match(actual[j])}
    return len(actual) in reachable


def refreshed(expected, actual):
    """The shown lines as they are printed now; `...` alone still stands for what it stood for, as far as can be told."""
    lines, at = [], 0
    actual = [line.rstrip() for line in actual]
    for place, line in enumerate(expected):
        if line.strip() == "..." or (not line.strip() and place == len(expected) - 1):
            lines.append(line)
            continue
        follows = place > 0 and expected[place - 1].strip() != "..." or place == 0
        choices = actual[at:at + 1] if follows else actual[at:]
        if not choices:
            continue
        best = max(range(len(choices)), key=lambda i: difflib.SequenceMatcher(None, line, choices[i]).ratio())
        at += best + 1
        lines.append(line if line_pattern(line.rstrip()).match(choices[best]) else choices[best])
    if expected and not any(line.strip() == "..." for line in expected):
        lines = actual + [line for line in expected[-1:] if not line.strip()]
    return lines


def printed(step, program, source):
    """A step's exit code and output."""
    command = re.sub(r"(?<![\w./-])(build/)?forerun(?![\w./-])", str(program), step.command)
    if command == step.command:
        return None
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=source, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


def run(step, program, source):
    """What is wrong with a step, or nothing."""
    done = printed(step, program, source)
    if done is None:
        return "the command does not run forerun"
    if done.returncode != step.exit_code:
        return f"exit code {done.returncode}, not {step.exit_code}:\n{done.stdout}"
    if not matches(step.expected, done.stdout.splitlines()):
        return "the output differs.\n--- shown\n" + "\n".join(step.expected) + "\n--- printed\n" + done.stdout
    return None


def missing_links(path):
    """Relative links of a Markdown file that lead nowhere."""
    links = re.findall(r"\]\(([^)#\s]+)\)", path.read_text())
    return [link for link in links if "://" not in link and not (path.parent / link).exists()]


# Sources that a page names: "derive/lowering.cpp" is in src/, "lab/eval/suite.h" where it says.
SOURCE = re.compile(r"(?<![\w/.-])((?:[a-z_0-9]+/)+[a-z_0-9]+\.(?:h|cpp|py|cmake))\b")


def missing_sources(path, source):
    """Sources that a Markdown file names and the tree does not hold; xyz and half_norms stand for a reader's own."""
    named = [name for name in SOURCE.findall(path.read_text()) if "xyz" not in name and "half_norms" not in name]
    folders = [source, source / "src", source / "python", source / "python" / "forerun", path.parent]
    return sorted({name for name in named if not any((folder / name).exists() for folder in folders)})


def self_check():
    """Shows on small cases that the test can pass and fail."""
    assert matches(["a", "...", "d"], ["a", "b", "c", "d"])
    assert matches(["a", "...", "d"], ["a", "d"])
    assert matches(["time ... ms", ""], ["time 12.5 ms  "])
    assert matches([], ["anything"])
    assert not matches(["a", "d"], ["a", "b", "d"])
    assert not matches(["a", "...", "d"], ["a", "b"])
    assert not matches(["1.5 ms"], ["1x5 ms"])
    assert not matches(["a"], ["a", "b"])
    assert refreshed(["a 1", "b 2", ""], ["a 3", "b 4", "c 5"]) == ["a 3", "b 4", "c 5", ""]
    assert refreshed(["...", "all 2.5 %", "..."], ["one 1.0 %", "all 3.5 %", "end"]) == ["...", "all 3.5 %", "..."]
    assert refreshed(["time ... ms", "...", "b 2"], ["time 7 ms", "x", "b 3"]) == ["time ... ms", "...", "b 3"]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.md"
        page.write_text(f"```sh\n$ forerun no\n```\n{MARK}\n```sh\n$ forerun a \\\n  b\nout\n$ build/forerun c # exit 3\n```\n"
                        "text\n```sh\n$ forerun unmarked\n```\n")
        steps = steps_of(page)
        assert [step.command for step in steps] == ["forerun a b", "build/forerun c # exit 3"], [s.command for s in steps]
        assert steps[0].expected == ["out"] and steps[1].exit_code == 3
        program = Path(folder) / "program"
        program.write_text('#!/bin/sh\necho "$1"\n[ "$1" != c ] || exit 3\n')
        program.chmod(0o755)
        page.write_text(page.read_text() + "[there](program) [gone](no/such.md) [far](https://example.org/x) `derive/no.cpp`\n")
        assert missing_links(page) == ["no/such.md"]
        assert missing_sources(page, Path(folder)) == ["derive/no.cpp"]
        assert run(steps[0], program, folder) is not None  # prints "a", the page shows "out"
        assert run(steps[1], program, folder) is None
        steps[1].exit_code = 0
        assert run(steps[1], program, folder) is not None
    print("self-check passed")


def steps_to_run(path):
    """Those of a page whose data is there."""
    for step in steps_of(path):
        if "$FORERUN_DATASETS" in step.command and not os.environ.get("FORERUN_DATASETS"):
            print(f"passed over {step.place}: it needs a data set; set FORERUN_DATASETS")
        else:
            yield step


def tested_pages(source):
    return [source / "README.md", *sorted((source / "docs").rglob("*.md"))]


def update(program, source):
    program, source = Path(program).resolve(), Path(source).resolve()
    for path in tested_pages(source):
        lines = path.read_text().splitlines()
        for step in reversed(list(steps_to_run(path))):  # from the end: what comes before keeps its place
            done = printed(step, program, source)
            if done is None or matches(step.expected, done.stdout.splitlines()):
                continue
            if done.returncode != step.exit_code:
                print(f"{step.place}: exit code {done.returncode}: left as it is\n{done.stdout}")
                continue
            lines[step.first:step.first + len(step.expected)] = refreshed(step.expected, done.stdout.splitlines())
            print(f"{step.place}: {step.command}")
        path.write_text("\n".join(lines) + "\n")


def main(program, source):
    program, source = Path(program).resolve(), Path(source).resolve()
    failures, count = 0, 0
    pages = [*source.glob("*.md"), *(path for folder in ("docs", "src", "lab", "data", "python", "examples")
                                     for path in (source / folder).rglob("*.md"))]
    for page in sorted(pages):
        for gone in [*missing_links(page), *missing_sources(page, source)]:
            failures += 1
            print(f"{page.relative_to(source)} names {gone}, which is not there")
    for path in tested_pages(source):
        for step in steps_to_run(path):
            count += 1
            problem = run(step, program, source)
            if problem:
                failures += 1
                print(f"{step.place}: {step.command}\n{problem}")
    print(f"{count} commands, {failures} failures")
    if count == 0:
        print(f"no command was run: mark blocks of README.md with {MARK}")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-check"]:
        self_check()
    elif len(sys.argv) == 4 and sys.argv[1] == "--update":
        update(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 3:
        sys.exit(main(sys.argv[1], sys.argv[2]))
    else:
        sys.exit(__doc__)
