"""Records the same models with each version of PyTorch that captures support, and compares what is predicted.

    ./run versions [VERSION...]          or: python3 python/tests/capture_versions.py --help

Makes a virtual environment for each version in build/, where the package index is reached and has a build that needs no
GPU; other versions are skipped with a word. Prints, by model, how many ops are recorded, the predicted iteration and
the memory reserved; where a version differs from the newest, the ops that do. version_models.py has the models.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Dict, List, Optional, Tuple

Json = Dict[str, Any]

VERSIONS = ("2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0")
_BESIDE = ("filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "setuptools")
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_DIFFERS = 0.005  # from the newest, as a share


def environment(version: str, folder: pathlib.Path) -> Tuple[Optional[str], str]:
    """The Python of a version's environment; or None, and why."""
    python = str(folder / "bin" / "python")
    if not pathlib.Path(python).exists():
        made = run([sys.executable, "-m", "venv", str(folder)])
        install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
        older = "numpy<2" if version.startswith(("2.4.", "2.5.")) else "numpy"
        for step in ([*install, "--no-deps", f"torch=={version}"], [*install, older, *_BESIDE]):
            made = made or run(step)
        if made:
            return None, f"not installed: {made}"
    broken = run([python, "-c", "import torch"])
    return (None, f"does not start: {broken}") if broken else (python, "")


def run(command: List[str], **options: Any) -> str:
    """What went wrong, in a line; empty where nothing did."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    lines = done.stderr.strip().splitlines() or ["no word"]
    return lines[-1] if done.returncode else ""


def answer(program: str, file: pathlib.Path) -> Json:
    """What is recorded and predicted, or an error."""
    error = file.with_suffix(".error")
    if error.exists():
        return {"error": error.read_text()}
    command = [program, "predict", str(file), "--gpu", "h200", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip()}
    predicted, columns = json.loads(done.stdout), json.loads(file.read_text())
    names = collections.Counter(columns["op_names"][index] for index in columns["ops"]["name"])
    reserved = predicted["peak_reserved"]
    return {"ops": names, "iter_ms": predicted["iter_ms"], "gpu_ms": predicted["gpu_ms"], "reserved": reserved}


def difference(now: Json, newest: Json) -> str:
    """Which ops differ; empty where GPU time and memory agree."""
    if all(abs(now[key] / newest[key] - 1) <= _DIFFERS for key in ("gpu_ms", "reserved")):
        return ""
    more, fewer = now["ops"] - newest["ops"], newest["ops"] - now["ops"]
    listed = [f"{'+' if part is more else '-'}{count} {name}" for part in (more, fewer) for name, count in part.items()]
    return ", ".join(listed) or "the same ops with other shapes or lifetimes"


def show(answers: Dict[str, Dict[str, Json]]) -> int:
    """The table; 1 where a model is not recorded or predicted."""
    newest = answers[list(answers)[-1]]
    print(f"{'model':<14}{'PyTorch':<9}{'ops':>6}{'iteration ms':>14}{'GPU ms':>9}{'reserved MiB':>14}")
    failed = 0
    for name in newest:
        for version, models in answers.items():
            found = models[name]
            if "error" in found:
                print(f"{name:<14}{version:<9}  fails: {found['error'][:160]}")
                failed = 1
                continue
            row = f"{sum(found['ops'].values()):>6}{found['iter_ms']:>14.3f}{found['gpu_ms']:>9.3f}"
            print(f"{name:<14}{version:<9}{row}{found['reserved'] / 2**20:>14.1f}")
            if "error" not in newest[name] and difference(found, newest[name]):
                print(f"{'':<14}differs: {difference(found, newest[name])}")
    return failed


def compare(versions: List[str], folder: pathlib.Path, program: str) -> int:
    answers: Dict[str, Dict[str, Json]] = {}
    for version in versions:
        python, why = environment(version, folder / f"torch-{version}")
        if python is None:
            print(f"PyTorch {version}: skipped, {why}", file=sys.stderr)
            continue
        records = folder / f"torch-{version}-records"
        records.mkdir(parents=True, exist_ok=True)
        for old in records.iterdir():
            old.unlink()
        wrong = run(
            [python, str(_ROOT / "python" / "tests" / "version_models.py"), str(records)],
            env={**os.environ, "PYTHONPATH": str(_ROOT / "python")},
        )
        if wrong:
            print(f"PyTorch {version}: {wrong}", file=sys.stderr)
            return 1
        names = sorted({file.stem for file in records.iterdir()})
        answers[version] = {name: answer(program, records / f"{name}.jsonl") for name in names}
    if not answers:
        print("no version of PyTorch can be installed here: nothing was compared", file=sys.stderr)
        return 0
    return show(answers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"{' '.join(VERSIONS)} if missing")
    parser.add_argument("--folder", type=pathlib.Path, default=_ROOT / "build", help="of environments and records")
    parser.add_argument("--forerun", default=str(_ROOT / "build" / "forerun"), help="the program")
    options = parser.parse_args()
    return compare(options.versions or list(VERSIONS), options.folder, options.forerun)


if __name__ == "__main__":
    sys.exit(main())
