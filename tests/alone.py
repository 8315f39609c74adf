#!/usr/bin/env python3
"""Compiles sources one at a time, which a unity build does not: a source or header that lacks an #include fails here.

usage: alone.py BUILD-DIR [--since COMMIT] [--share I/N] [--jobs J] [--at-most COUNT] [FILE...]
       alone.py --self-check

Nothing is optimised or written: the compiler parses (-fsyntax-only) with the flags that BUILD-DIR compiles the source with.
A header is compiled as a source that includes nothing else. What is compiled:
  FILE...         these
  --since COMMIT  what differs from the commit, and the sources that include a header that does
  --share I/N     beside that, each Nth source, from the Ith on; so that N runs with different I compile all
  neither         all sources and headers
LibTorch's headers take ten seconds to parse, so what includes them is left out unless it is named.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
# How the flags of a compilation differ where it only parses.
DROPPED = {"-c", "-MD", "-Winvalid-pch", "-g", "-g1"}
DROPPED_WITH_VALUE = {"-o", "-MT", "-MF", "-include", "-include-pch"}


def included_by(path: pathlib.Path, folders: list[pathlib.Path]) -> set[pathlib.Path]:
    """Finds the project's own headers that a file includes itself."""
    found = set()
    for name in INCLUDE.findall(path.read_text(errors="replace")):
        for folder in folders:
            if (folder / name).is_file():
                found.add(folder / name)
                break
    return found


class Sources:
    """The sources of a build, with the flags of each."""

    def __init__(self, build: pathlib.Path, root: pathlib.Path = ROOT) -> None:
        self.root = root
        self.flags: dict[pathlib.Path, list[str]] = {}  # by source
        self.folders: dict[pathlib.Path, pathlib.Path] = {}  # where its compiler runs
        for entry in json.loads((build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            file = pathlib.Path(entry["file"])
            sources = [file]
            if "/Unity/" in entry["file"]:
                sources = [pathlib.Path(name) for name in INCLUDE.findall(file.read_text())]
            flags = self.parsing(words, entry["file"])
            for source in sources:
                if source.is_file() and self.root in source.parents and build.resolve() not in source.resolve().parents:
                    self.flags.setdefault(source, flags)
                    self.folders.setdefault(source, pathlib.Path(entry["directory"]))
        self.closures: dict[pathlib.Path, set[pathlib.Path]] = {}
        include = [root / "src", root]
        direct: dict[pathlib.Path, set[pathlib.Path]] = {}
        for source in self.flags:
            todo, closure = [source], set()
            while todo:
                file = todo.pop()
                if file not in direct:
                    direct[file] = included_by(file, include)
                fresh = direct[file] - closure
                closure |= fresh
                todo += fresh
            self.closures[source] = closure

    @staticmethod
    def parsing(words: list[str], file: str) -> list[str]:
        while words and pathlib.Path(words[0]).name == "ccache":
            words = words[1:]
        kept: list[str] = []
        skip = False
        for word in words:
            if skip:
                skip = False
            elif word in DROPPED_WITH_VALUE:
                skip = True
            elif word not in DROPPED and word != file and not word.startswith("-fsanitize"):
                kept.append(word)
        return [*kept, "-fsyntax-only"]

    def headers(self) -> dict[pathlib.Path, pathlib.Path]:
        """Each header of the project, and a source that includes it: its flags are the header's."""
        users: dict[pathlib.Path, pathlib.Path] = {}
        for source in sorted(self.flags, key=lambda path: (path.name.endswith("_test.cpp"), path)):
            for header in self.closures[source]:
                users.setdefault(header, source)
        return users

    def heavy(self, file: pathlib.Path) -> bool:
        texts = {file} | self.closures.get(file, set())
        return any(re.search(r"#\s*include\s*<(torch|ATen|c10)/", text.read_text(errors="replace")) for text in texts)

    def compile(self, file: pathlib.Path, user: pathlib.Path) -> str:
        """Compiles a source, or a header with the flags of a source that includes it. Returns what is wrong."""
        command = list(self.flags[user])
        text = None
        if file.suffix == ".h":
            command += ["-x", "c++", "-"]
            text = f'#include "{file}"\n'
        else:
            command.append(str(file))
        done = subprocess.run(command, cwd=self.folders[user], input=text, capture_output=True, text=True)
        return done.stderr if done.returncode != 0 else ""


def changed_since(commit: str, root: pathlib.Path) -> set[pathlib.Path]:
    names = ""
    for command in (["diff", "--name-only", "--diff-filter=d", commit], ["ls-files", "--others", "--exclude-standard"]):
        names += subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True, check=True).stdout
    return {root / name for name in names.splitlines() if name.endswith((".cpp", ".h"))}


def chosen(sources: Sources, since: str | None, share: str | None) -> list[pathlib.Path]:
    """What to compile: what changed first, what uses it then, the share last."""
    headers = sources.headers()
    everything = sorted([*sources.flags, *headers])
    if since is None and share is None:
        return [file for file in everything if not sources.heavy(file)]
    changed = changed_since(since, sources.root) if since else set()
    order = [file for file in everything if file in changed]
    order += [file for file in sources.flags if sources.closures[file] & changed and file not in changed]
    if share:
        at, parts = (int(number) for number in share.split("/"))
        names = {file: zlib.crc32(str(file.relative_to(sources.root)).encode()) for file in everything}
        order += [file for file in everything if names[file] % parts == at % parts and file not in order]
    return [file for file in order if not sources.heavy(file)]


def check(sources: Sources, files: list[pathlib.Path], jobs: int) -> list[tuple[pathlib.Path, str]]:
    headers = sources.headers()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        problems = pool.map(lambda file: sources.compile(file, headers.get(file, file)), files)
        return [(file, problem) for file, problem in zip(files, problems) if problem]


def self_check() -> None:
    """Plants a source and a header that compile only behind others, and one of each that stands alone."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        texts = {
            "src/a/sound.h": "#pragma once\n#include <vector>\nusing Row = std::vector<int>;\n",
            "src/a/sound.cpp": '#include "a/sound.h"\nRow row() { return {}; }\n',
            "src/a/needy.h": "#pragma once\nusing Rows = std::vector<Row>;\n",
            "src/a/needy.cpp": '#include "a/sound.h"\n#include "a/needy.h"\nRows rows() { return {}; }\n',
            "src/a/bare.cpp": "Row bare() { return {}; }\n",
        }
        for name, text in texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        unity = root / "build/x.dir/Unity/unity_0_cxx.cxx"
        unity.parent.mkdir(parents=True)
        unity.write_text("".join(f'#include "{root}/src/a/{name}.cpp"\n' for name in ("sound", "needy", "bare")))
        compiler = os.environ.get("CXX", "c++")
        command = f"{compiler} -std=c++20 -I{root}/src -O2 -o x.o -c {unity}"
        entry = {"directory": str(root / "build"), "file": str(unity), "command": command}
        (root / "build/compile_commands.json").write_text(json.dumps([entry]))
        assert subprocess.run(shlex.split(command), cwd=root / "build").returncode == 0, "together they compile"
        sources = Sources(root / "build", root)
        files = chosen(sources, None, None)
        assert len(files) == 5, files
        found = {file.name for file, _ in check(sources, files, 2)}
        assert found == {"needy.h", "bare.cpp"}, found
        shares = [chosen(sources, None, f"{at}/3") for at in range(3)]
        assert sorted(file for share in shares for file in share) == files, "three thirds are all"
    print("alone.py finds what it should")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--since")
    parser.add_argument("--share")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--at-most", type=int)
    parser.add_argument("--self-check", action="store_true")
    options = parser.parse_args()
    if options.self_check:
        return self_check()
    if options.build is None:
        parser.error("which build?")
    sources = Sources(options.build.resolve())
    files = [file.resolve() for file in options.files] or chosen(sources, options.since, options.share)
    unknown = [file for file in files if file not in sources.flags and file not in sources.headers()]
    if unknown:
        sys.exit(f"alone.py: {options.build} does not compile {', '.join(map(str, unknown))}")
    left = files[options.at_most:] if options.at_most else []
    files = files[:len(files) - len(left)]
    problems = check(sources, files, options.jobs)
    for file, problem in problems:
        print(f"{file.relative_to(ROOT)} does not compile on its own:\n{problem}", file=sys.stderr)
    more = f"; {len(left)} more would have been next" if left else ""
    print(f"{len(files)} files compiled on their own, {len(problems)} not{more}")
    if problems:
        sys.exit(1)


if __name__ == "__main__":
    main()
