"""The `forerun` program's word on a configuration, for tests of models and samplers that skip where it is not built."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Optional

from forerun.configuration import Configuration

ROOT = Path(__file__).resolve().parents[2]
_INPUT_NAMES = {"image": ("batch", "channels", "image", "classes"), "dense": ("batch", "channels", "image", "classes"),
                "tokens": ("batch", "length", "vocab", ""), "flat": ("batch", "features", "", "classes")}


def program() -> Optional[str]:
    """The built program: $FORERUN, or build/forerun; None where it does not run."""
    path = os.environ.get("FORERUN", str(ROOT / "build" / "forerun"))
    try:
        done = subprocess.run([path, "--version"], capture_output=True, check=False)
    except OSError:
        return None
    return path if done.returncode == 0 else None


def families(path: str) -> List[str]:
    """The names that `forerun zoo` lists."""
    lines = subprocess.run([path, "zoo"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split(":")[0] for line in lines if ": " in line and not line.startswith(" ")]


def records(path: str, file: Path, folder: Path) -> List[Dict[str, Any]]:
    """The records of a file, compressed or not."""
    plain = folder / "records.jsonl"
    subprocess.run([path, "data", "merge", str(plain), str(file)], capture_output=True, check=True)
    return [json.loads(line) for line in plain.read_text().splitlines()]


def parameters(path: str, configuration: Configuration) -> int:
    """How many parameters the zoo gives the model; an AssertionError with the program's words where it refuses it."""
    settings: Dict[str, Any] = dict(zip(_INPUT_NAMES[configuration.input[0]], configuration.input[1:]))
    settings.pop("", None)
    settings.update(configuration.args)
    command = [path, "predict", configuration.family, "--json"]
    for name, value in settings.items():
        command += ["--set", f"{name}={_text(value)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), f"{configuration.line()}: {done.stderr}"  # 3: does not fit in memory
    return int(json.loads(done.stdout)["params"])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "0" if value is None else str(value)
