#!/usr/bin/env python3
"""The clone stays light: data/README.md says how large each folder is, and the tree has at most 43.5 MB.

    data_size_test.py SOURCE_DIR
"""
import pathlib
import re
import subprocess
import sys

MOST_BYTES = 43_500_000
ROW = re.compile(r"^\| \[(\w+)\]\(\1/README\.md\) \| ([\d.]+) \|", re.MULTILINE)


def files_of(source):
    """The files that a clone would have; of an unpacked archive, all of them but what was built."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
        return [source / name for name in names if (source / name).is_file()]
    return [path for path in source.rglob("*")
            if path.is_file() and not path.relative_to(source).parts[0].startswith(("build", "."))]


def main():
    source = pathlib.Path(sys.argv[1])
    sizes = {path.relative_to(source): path.stat().st_size for path in files_of(source)}
    folders = {}
    for path, size in sizes.items():
        if path.parts[0] == "data" and len(path.parts) > 2:
            folders[path.parts[1]] = folders.get(path.parts[1], 0) + size
    stated = dict(ROW.findall((source / "data/README.md").read_text(encoding="utf-8")))
    problems = []
    for folder in sorted(folders.keys() | stated.keys()):
        actual = f"{folders.get(folder, 0) / 1e6:.1f}"
        if stated.get(folder) != actual:
            problems.append(f"data/README.md says {stated.get(folder, 'nothing')} of {folder}, which has {actual} MB")
    total = sum(sizes.values())
    if total > MOST_BYTES:
        largest = sorted(sizes.items(), key=lambda item: -item[1])[:10]
        problems.append(f"the tree has {total / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.1f}; its largest files: "
                        + ", ".join(f"{path} {size / 1e6:.1f}" for path, size in largest))
    for problem in problems:
        print(problem)
    print(f"{len(sizes)} files, {total / 1e6:.1f} MB")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
