"""Shards: what is read back after kills, torn lines and full disks."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from forerun.records import RecordError, encode
from forerun.shards import InUse, ShardWriter, exclusive, finished, finished_ids, read_records, shards


def record(number: int, **more: object) -> Dict[str, Any]:
    return {"schema": "run/2", "id": f"r{number}", "status": "ok", "values": list(range(number)), **more}


def write(folder: Path, *numbers: int) -> Path:
    with ShardWriter(folder, "run") as shard:
        for number in numbers:
            shard.append(record(number))
    assert shard.path is not None
    return shard.path


class Complaints(List[Tuple[str, int, str]]):
    def __call__(self, path: Path, line: int, problem: str) -> None:
        self.append((path.name, line, problem))


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    path = write(tmp_path / "new", 1, 2, 3)
    assert path.name == "run-0001.jsonl"
    assert list(read_records(path)) == [record(1), record(2), record(3)]
    assert finished_ids(tmp_path / "new", "run") == {"r1", "r2", "r3"}


def test_a_record_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    shard = ShardWriter(tmp_path, "run", sync=True)
    for number in range(3):
        shard.append(record(number))
        assert finished_ids(tmp_path, "run") == {f"r{n}" for n in range(number + 1)}


def test_every_writer_has_a_shard_of_its_own(tmp_path: Path) -> None:
    assert [write(tmp_path, n).name for n in (1, 2)] == ["run-0001.jsonl", "run-0002.jsonl"]
    (tmp_path / "run-0007.jsonl.gz").write_bytes(gzip.compress(encode(record(7))))
    (tmp_path / "run-extra-0009.jsonl").write_bytes(encode(record(9)))
    (tmp_path / "run-0011.jsonl.tmp").write_bytes(encode(record(11)))
    assert write(tmp_path, 8).name == "run-0008.jsonl"
    with ShardWriter(tmp_path, "run") as one, ShardWriter(tmp_path, "run") as other:
        one.append(record(20))
        other.append(record(21))
        one.append(record(22))
    assert one.path != other.path
    assert finished_ids(tmp_path, "run") == {"r1", "r2", "r7", "r8", "r20", "r21", "r22"}
    assert [path.name[4:8] for path in shards(tmp_path, "run")] == ["0001", "0002", "0007", "0008", "0009", "0010"]


def test_a_writer_without_records_leaves_no_file(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "run") as shard:
        with pytest.raises(RecordError):
            shard.append({"id": "x", "value": float("nan")})
        with pytest.raises(ValueError):
            shard.append_line(b"two\nlines\n")
        with pytest.raises(ValueError):
            shard.append_line(b"no end")
    assert shard.path is None
    assert shards(tmp_path, "run") == []


def test_a_kill_at_any_byte_loses_only_the_line_in_hand(tmp_path: Path) -> None:
    whole = write(tmp_path, 1, 2, 3).read_bytes()
    ends = [end + 1 for end, byte in enumerate(whole) if byte == ord("\n")]
    path = tmp_path / "cut" / "run-0001.jsonl"
    path.parent.mkdir()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        survivors = sum(end <= size for end in ends)
        complaints = Complaints()
        assert [r["id"] for r in read_records(path, complaints)] == ["r1", "r2", "r3"][:survivors]
        assert finished_ids(path.parent, "run") == {"r1", "r2", "r3"} - {f"r{n}" for n in range(survivors + 1, 4)}
        torn = size not in [0, *ends]
        assert complaints == ([("run-0001.jsonl", survivors + 1, "torn: the line has no end")] if torn else [])


def test_nothing_is_written_behind_a_torn_line(tmp_path: Path) -> None:
    first = write(tmp_path, 1, 2)
    os.truncate(first, first.stat().st_size - 5)
    write(tmp_path, 2)
    assert [[r["id"] for r in read_records(path)] for path in shards(tmp_path, "run")] == [["r1"], ["r2"]]


def test_a_damaged_line_costs_no_other(tmp_path: Path) -> None:
    lines = [encode(record(n)) for n in (1, 2, 3)]
    lines[1] = lines[1][:40] + b"\0" * 20 + b"\n"
    path = tmp_path / "run-0001.jsonl"
    path.write_bytes(b"".join(lines) + b"[1]\n\n")
    complaints = Complaints()
    assert [r["id"] for r in read_records(path, complaints)] == ["r1", "r3"]
    assert [(line, problem[:13]) for _, line, problem in complaints] == [(2, "not a record:"), (4, "not a record:")]
    complaints.clear()
    assert finished_ids(tmp_path, "run", complaints) == {"r1", "r3"}
    assert [(line, problem[:13]) for _, line, problem in complaints] == [(2, "not a record:"), (4, "not a record:")]


def test_a_torn_compressed_file_gives_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "run-0001.jsonl.gz"
    path.write_bytes(gzip.compress(encode(record(1)) + encode(record(2)))[:-6])
    complaints = Complaints()
    assert {str(r["id"]) for r in read_records(path, complaints)} <= {"r1", "r2"}
    assert len(complaints) == 1 and complaints[0][2].startswith("torn")


def test_the_last_status_of_an_id_counts(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "run") as shard:
        shard.append(record(1, status="failed"))
        shard.append(record(2, status="oom"))
        shard.append({"schema": "env/1", "gpu": "g"})
    with ShardWriter(tmp_path, "run") as shard:
        shard.append(record(1))
    # As another program may write it: spaces, another order, an escaped id.
    (tmp_path / "run-0003.jsonl").write_text('{"id": "r\\u00e9", "schema": "run/2", "x": 1, "status": "failed"}\n')
    found = {id: head["status"] for id, head in finished(tmp_path, "run").items()}
    assert found == {"r1": "ok", "r2": "oom", "r\u00e9": "failed"}


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = ShardWriter(tmp_path, "run")
    shard.append(record(1))
    write_some = os.write

    def full_soon(file: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return write_some(file, data[:10])

    monkeypatch.setattr(os, "write", full_soon)
    with pytest.raises(OSError):
        shard.append(record(2))
    monkeypatch.undo()
    shard.append(record(3))
    assert shard.path is not None
    complaints = Complaints()
    assert [r["id"] for r in read_records(shard.path, complaints)] == ["r1", "r3"]
    assert complaints == []


def test_one_process_a_folder(tmp_path: Path) -> None:
    with exclusive(tmp_path / "new"):
        with pytest.raises(InUse, match="new"):
            with exclusive(tmp_path / "new"):
                pass
        with exclusive(tmp_path / "other"):
            pass
    with exclusive(tmp_path / "new"):
        pass
