#!/usr/bin/env python3
"""Writes the ONNX files of this folder with nothing but the standard library: python3 write_examples.py

small_cnn.onnx          two conv - batch norm - relu stages, pooling, a linear layer; opset 13, dynamic batch "N"
transformer_block.onnx  embedding, one pre-norm transformer block, logits; opset 17, dynamic "batch" and "length",
                        heads split with sizes computed from Shape, as exporters write it
Weights have shapes only: their data is declared external and never read.
"""

import os
import struct

FLOAT, INT64 = 1, 7


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """One protobuf field: int as varint, float as 32 bits, str and bytes as length-delimited."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    """AttributeProto: f = 2, i = 3, s = 4, ints = 8, type = 20."""
    if isinstance(value, list):
        return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)
    number, kind = {float: (2, 1), int: (3, 2), str: (4, 3)}[type(value)]
    return field(1, name) + field(number, value) + field(20, kind)


class Model:
    def __init__(self, opset):
        self.opset, self.nodes, self.initializers, self.inputs, self.outputs = opset, [], [], [], []

    def weight(self, name, *dims):  # TensorProto: dims = 1, data_type = 2, name = 8, data_location = 14 (external)
        self.initializers.append(b"".join(field(1, d) for d in dims) + field(2, FLOAT) + field(8, name) + field(14, 1))
        return name

    def ints(self, name, values, scalar=False):
        dims = b"" if scalar else field(1, len(values))
        self.initializers.append(dims + field(2, INT64) + field(8, name) + field(9, struct.pack(f"<{len(values)}q", *values)))
        return name

    def scalar(self, name, value):
        self.initializers.append(field(2, FLOAT) + field(8, name) + field(9, struct.pack("<f", value)))
        return name

    def node(self, kind, inputs, output, **attributes):  # NodeProto: input, output, name, op_type, attribute
        message = b"".join(field(1, i) for i in inputs) + field(2, output) + field(3, f"/{output}/{kind}") + field(4, kind)
        self.nodes.append(message + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()))
        return output

    def value(self, name, dims, kind):
        shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))

    def input(self, name, dims, kind=FLOAT):
        self.inputs.append(self.value(name, dims, kind))
        return name

    def output(self, name, dims):
        self.outputs.append(self.value(name, dims, FLOAT))

    def write(self, path):
        graph = b"".join(field(1, n) for n in self.nodes) + field(2, "main")
        for number, parts in ((5, self.initializers), (11, self.inputs), (12, self.outputs)):
            graph += b"".join(field(number, part) for part in parts)
        model = field(1, 8) + field(2, "forerun-examples") + field(7, graph) + field(8, field(1, "") + field(2, self.opset))
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), path), "wb") as file:
            file.write(model)


def small_cnn():
    m = Model(13)
    x = m.input("image", ["N", 3, 32, 32])
    for i, (fan_in, fan_out) in enumerate([(3, 16), (16, 32)], start=1):
        weight = m.weight(f"conv{i}.weight", fan_out, fan_in, 3, 3)
        x = m.node("Conv", [x, weight], f"conv{i}", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
        parts = [m.weight(f"bn{i}.{p}", fan_out) for p in ("weight", "bias", "running_mean", "running_var")]
        x = m.node("BatchNormalization", [x, *parts], f"bn{i}", epsilon=1e-5, momentum=0.9)
        x = m.node("Relu", [x], f"relu{i}")
        x = m.node("MaxPool", [x], f"pool{i}", kernel_shape=[2, 2], strides=[2, 2])
    x = m.node("Flatten", [m.node("GlobalAveragePool", [x], "avgpool")], "flatten", axis=1)
    m.node("Gemm", [x, m.weight("fc.weight", 10, 32), m.weight("fc.bias", 10)], "logits", transB=1)
    m.output("logits", ["N", 10])
    m.write("small_cnn.onnx")


def transformer_block(width=64, heads=4, vocabulary=1000):
    m = Model(17)
    ids = m.input("input_ids", ["batch", "length"], INT64)
    zero, one = m.ints("zero", [0], scalar=True), m.ints("one", [1], scalar=True)
    axis, rest = m.ints("axis", [0]), m.ints("rest", [heads, width // heads])

    def linear(x, name, fan_in, fan_out):
        product = m.node("MatMul", [x, m.weight(f"onnx::MatMul_{name}", fan_in, fan_out)], f"{name}_product")
        return m.node("Add", [m.weight(f"{name}.bias", fan_out), product], name)

    def norm(x, name):
        return m.node("LayerNormalization", [x, m.weight(f"{name}.weight", width), m.weight(f"{name}.bias", width)], name,
                      axis=-1, epsilon=1e-5)

    x = m.node("Gather", [m.weight("embedding.weight", vocabulary, width), ids], "embedded")
    h = norm(x, "norm1")
    shape = m.node("Shape", [h], "shape")
    sizes = [m.node("Unsqueeze", [m.node("Gather", [shape, i], f"extent_{i}"), axis], f"list_{i}") for i in (zero, one)]
    split = m.node("Concat", [*sizes, rest], "split", axis=0)
    parts = {}
    for name in ("query", "key", "value"):
        apart = m.node("Reshape", [linear(h, name, width, width), split], f"{name}_heads")
        parts[name] = m.node("Transpose", [apart], f"{name}_first", perm=[0, 2, 3, 1] if name == "key" else [0, 2, 1, 3])
    scores = m.node("MatMul", [parts["query"], parts["key"]], "scores")
    scores = m.node("Div", [scores, m.scalar("scale", (width // heads) ** 0.5)], "scaled")
    mixed = m.node("MatMul", [m.node("Softmax", [scores], "weights", axis=-1), parts["value"]], "mixed")
    joined = m.node("Reshape", [m.node("Transpose", [mixed], "back", perm=[0, 2, 1, 3]), shape], "joined")
    x = m.node("Add", [x, linear(joined, "out", width, width)], "residual1")
    h = m.node("Relu", [linear(norm(x, "norm2"), "up", width, 4 * width)], "act")
    x = m.node("Add", [x, linear(h, "down", 4 * width, width)], "residual2")
    m.node("MatMul", [x, m.weight("onnx::MatMul_head", width, vocabulary)], "logits")
    m.output("logits", ["batch", "length", vocabulary])
    m.write("transformer_block.onnx")


if __name__ == "__main__":
    small_cnn()
    transformer_block()
