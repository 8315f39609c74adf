"""Installs the program, moves the prefix, and asks it from elsewhere: it must read the installed data and no other.

    install_test.py BUILD_FOLDER
"""

import os
import pathlib
import subprocess
import sys
import tempfile


def run(*command: str, **options: object) -> str:
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)  # type: ignore
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} exits with {done.returncode}:\n{done.stdout}")
    return done.stdout


def main(build: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, moved = pathlib.Path(folder, "first"), pathlib.Path(folder, "moved")
        run("cmake", "--install", build, "--prefix", str(first))
        first.rename(moved)
        environment = {key: value for key, value in os.environ.items() if key != "FORERUN_DATA"}
        program = str(moved / "bin" / "forerun")

        def ask(*arguments: str) -> str:
            return run(program, *arguments, cwd=folder, env=environment)

        assert "Iteration" in ask("predict", "resnet18"), "the installed program predicts nothing"
        assert "Tesla T4" in ask("devices")
        (moved / "share/forerun/data/devices/t4.json").unlink()
        assert "Tesla T4" not in ask("devices"), "the program reads other data than the installed"
        data = sum(path.stat().st_size for path in (moved / "share/forerun/data").rglob("*") if path.is_file())
        assert data < 8e6, f"{data} bytes of data are installed"
        for path in ("include/forerun_policy.h", "share/bash-completion/completions/forerun", "share/zsh/site-functions/_forerun",
                     "share/fish/vendor_completions.d/forerun.fish", "share/man/man1/forerun.1",
                     "share/man/man1/forerun-predict.1"):
            assert (moved / path).stat().st_size > 500, path
    print("installed, moved and asked")


if __name__ == "__main__":
    main(sys.argv[1])
