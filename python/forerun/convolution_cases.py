"""Convolutions whose memory beyond their results was measured: from single calls (op/1) and from training (run/2).

A training run's allocator trace holds every request. The requests of the second iteration are told apart by the sizes
of what ops give out, in order; what a convolution asks for besides, between its results and those of the next op, is
its workspace; of equal convolutions the middle one counts. Each case carries the run's family, so that tables can be
made without it.
"""
from __future__ import annotations

import dataclasses
import math
import statistics
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

Json = Dict[str, Any]

FORWARD = "aten.convolution.default"
BACKWARD = "aten.convolution_backward.default"
NO_FAMILY = "-"
_LOOK_AHEAD = 60  # events among which the request of a result is sought
_MAY_BE_IN_PLACE = "aten.add.Tensor"


@dataclasses.dataclass(frozen=True)
class ConvolutionCase:
    """One pass (f forward, d data gradient, w weight gradient) of a convolution, and the bytes it took besides."""

    kind: str
    family: str
    half: bool
    channels_last: bool
    transposed: bool
    groups: int
    batch: int
    channels: int
    filters: int
    kernel: int
    kernel_height: int
    stride: int
    dilation: int
    padding: int
    image: int
    out_image: int
    in_width: int
    workspace: int

    def line(self) -> str:
        values = dataclasses.astuple(self)
        return "\t".join([self.kind, self.family] + [str(int(value)) for value in values[2:]])

    def runs_in_cudnn(self) -> bool:
        """PyTorch runs depthwise convolutions itself unless channels lie together, and takes nothing for them."""
        return self.channels_last or not 1 < self.groups == self.channels


Tensor = Sequence[Any]  # dtype, shape, strides or None


def _case(kind: str, family: str, image: Tensor, weight: Tensor, result: Tensor, attributes: Json,
          workspace: int) -> Optional[ConvolutionCase]:
    shape, window, out = image[1], weight[1], result[1]
    if min(len(shape), len(window), len(out)) < 4 or 0 in shape or 0 in out:
        return None
    strides = image[2]
    return ConvolutionCase(
        kind=kind, family=family, half=image[0] != "float32",
        channels_last=strides is not None and strides[1] == 1 and shape[1] > 1 and math.prod(shape[2:]) > 1,
        transposed=bool(attributes.get("transposed")), groups=attributes.get("groups", 1), batch=shape[0],
        channels=shape[1], filters=out[1], kernel=math.prod(window[2:]), kernel_height=window[2],
        stride=max(attributes["stride"]), dilation=max(attributes["dilation"]), padding=max(attributes["padding"]),
        image=math.prod(shape[2:]), out_image=math.prod(out[2:]), in_width=shape[-1], workspace=workspace)


def case_of_sample(record: Json) -> Optional[ConvolutionCase]:
    """The case of an op/1 sample; None where the input is no image."""
    attributes = record["attributes"]
    if record["op"] == FORWARD:
        return _case("f", NO_FAMILY, record["inputs"][0], record["inputs"][1], record["outputs"][0], attributes,
                     record["workspace"])
    result, image, weight = record["inputs"][:3]
    kind = "d" if attributes["output_mask"][0] else "w"
    return _case(kind, NO_FAMILY, image, weight, result, attributes, record["workspace"])


def cases_of_run(record: Json) -> List[ConvolutionCase]:
    """The cases of a run/2 record; none where it has no allocator trace, or does not tell how images lie in memory."""
    if "alloc_trace" not in record or "ops" not in record or not any("convolution" in n for n in record["op_names"]):
        return []
    lies_plainly = not record["run"].get("channels_last") and "aten.permute.default" not in record["op_names"]
    if "strides" not in record["tensors"] and not lies_plainly:
        return []
    alike: Dict[ConvolutionCase, List[int]] = {}
    for case in _TracedRun(record).cases():
        alike.setdefault(dataclasses.replace(case, workspace=0), []).append(case.workspace)
    return [dataclasses.replace(case, workspace=statistics.median_low(found)) for case, found in alike.items()]


class _TracedRun:
    """The ops of an iteration beside the events of the allocator."""

    def __init__(self, record: Json) -> None:
        self._record = record
        trace = record["alloc_trace"]
        self._events = [(action, address, size) for action, address, size
                        in zip(trace["action"], trace["address"], trace["size"]) if action in "ar"]
        self._start = self._second_iteration()
        self._bytes: List[int] = record["storages"]["bytes"]
        self._elsewhere: Set[int] = set(record["storages"].get("host", [])) | set(record["roots"]["storage"])
        self._requests: Dict[int, List[int]] = {}  # op: the events of its results
        self._taken: Set[int] = set()
        self._match()

    def _second_iteration(self) -> int:
        """The first event of an iteration that begins as the one after it does; the first iteration where unmarked."""
        marks = self._record["alloc_trace"].get("marks", [])
        forwards = [index for index, name in marks if name == "f"]
        if len(forwards) > 1:
            actions = self._record["alloc_trace"]["action"]
            return sum(action in "ar" for action in actions[:forwards[1]])
        held, built = 0, self._record.get("mem_init", 0) - self._record.get("base_allocated", 0)
        for place, (action, _, size) in enumerate(self._events):
            held += (size + 511) // 512 * 512 * (1 if action == "a" else -1)
            if held >= built:
                return place + 1
        return len(self._events)

    def _match(self) -> None:
        ops, seen = self._record["ops"], set(self._elsewhere)
        storages = self._record["tensors"]["storage"]
        at = self._start
        for op, outputs in enumerate(ops["outputs"]):
            name = self._name(op)
            for tensor in outputs:
                storage = storages[tensor]
                if storage in seen:
                    continue
                seen.add(storage)
                if name == _MAY_BE_IN_PLACE or self._bytes[storage] == 0:
                    continue
                found = self._find(at, self._bytes[storage])
                if found is not None:
                    self._requests.setdefault(op, []).append(found)
                    self._taken.add(found)
                    at = found + 1

    def _find(self, at: int, size: int) -> Optional[int]:
        for place in range(at, min(at + _LOOK_AHEAD, len(self._events))):
            if self._events[place][0] == "a" and self._events[place][2] == size:
                return place
        return None

    def _name(self, op: int) -> str:
        return str(self._record["op_names"][self._record["ops"]["name"][op]])

    def _tensor(self, index: int) -> Tuple[str, List[int], Optional[List[int]]]:
        tensors, shapes = self._record["tensors"], self._record["shapes"]
        strides = tensors["strides"][index] if "strides" in tensors else -1
        return (self._record["dtypes"][tensors["dtype"][index]], shapes[tensors["shape"][index]],
                None if strides < 0 else shapes[strides])

    def _besides(self, result: int) -> int:
        """The most that is held at once of what is asked for behind a result and given back before the next one."""
        held: Dict[int, int] = {}
        most = 0
        for place in range(result + 1, min(result + _LOOK_AHEAD, len(self._events))):
            action, address, size = self._events[place]
            if place in self._taken:
                break
            if action == "a":
                held[address] = size
                most = max(most, sum(held.values()))
            elif held.pop(address, None) is not None and not held:
                break  # what follows belongs to the next op
        return 0 if held else most

    def cases(self) -> Iterator[ConvolutionCase]:
        ops = self._record["ops"]
        for op, name in enumerate(ops["name"]):
            text = self._record["op_names"][name]
            if text not in (FORWARD, BACKWARD) or op not in self._requests:
                continue
            inputs = [self._tensor(index) for index in ops["inputs"][op]]
            attributes = self._record["attributes"][ops["attributes"][op]]
            results = self._requests[op]
            if text == FORWARD:
                image, weight, result = inputs[0], inputs[1], self._tensor(ops["outputs"][op][0])
                passes = [("f", results[0])]
            else:
                result, image, weight = inputs[:3]
                wanted = [kind for kind, asked in zip("dw", attributes["output_mask"]) if asked]
                if len(results) < len(wanted):
                    continue
                passes = list(zip(wanted, results))
            for kind, event in passes:
                case = _case(kind, self._record["family"], image, weight, result, attributes, self._besides(event))
                if case is not None:
                    yield case
