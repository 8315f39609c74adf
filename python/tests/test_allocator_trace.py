"""Allocator events as columns."""
from forerun.allocator_trace import trace_columns

BASE = 0x7F0000000000


def test_columns_of_a_trace() -> None:
    events = [
        {"action": "segment_alloc", "addr": BASE, "size": 2097152, "stream": 11, "time_us": 10},
        {"action": "alloc", "addr": BASE, "size": 700, "stream": 11, "time_us": 11},
        {"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": 12},
        {"action": "alloc", "addr": BASE + 1024, "size": 512, "stream": 12, "time_us": 20},
        {"action": "free_requested", "addr": BASE, "size": 700, "stream": 11, "time_us": 30},
        {"action": "free_completed", "addr": BASE, "size": 700, "stream": 11, "time_us": 31},
        {"action": "oom", "addr": 123456, "size": 2**40, "stream": 11, "time_us": 40},
    ]
    columns = trace_columns(events, [(5, "build"), (15, "f"), (100, "b")])
    assert columns["action"] == "SaarfO"
    assert columns["address_base"] == BASE
    assert columns["address"] == [0, 0, 2, 0, 0, -1]
    assert columns["size"] == [2097152, 700, 512, 700, 700, 2**40]
    assert columns["stream"] == [0, 0, 1, 0, 0, 0]
    assert columns["marks"] == [[0, "build"], [2, "f"], [6, "b"]]
