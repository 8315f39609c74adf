// Small hand-made records, and the comparison of graphs, for the tests of record files.
#pragma once

#include <nlohmann/json.hpp>
#include <ranges>
#include <string>

#include "graph/graph.h"

namespace forerun {

// A linear layer's step in three ops, with the profiler's marks around them.
inline nlohmann::json small_record() {
  return nlohmann::json::parse(R"({
    "schema": "run/1", "id": "hand/00001", "family": "mlp", "args": {"h": 7},
    "input": ["flat", 2, 3, 0, 7],
    "run": {"precision": "amp_bf16", "channels_last": true,
            "optimizer": {"name": "SGD", "impl": "fused", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}},
    "env": {"gpu": "NVIDIA H200", "torch": "2.11.0", "cuda": "13.0", "cudnn": 91900, "calibration": {"x": 1}},
    "params": 21, "param_tensors": 1,
    "op_names": ["profiler.mark", "aten.mm.default", "aten._fused_sgd_.default"], "modules": ["", "fc"],
    "module_types": {"": "Mlp"},
    "ops": [[0, "u", 0, [], [], {"name": "zero_grad"}, 0, ""],
            [1, "f", 1, [[0, "float32", [2, 3]], [1, "float32", [3, 7]]], [[2, "float32", [2, 7]]], {"p": 0.5, "d": [1, 2]}, 1, ""],
            [0, "b", 0, [], [], {}, 0, ""],
            [1, "b", 1, [[0, "float32", [3, 2]], [2, "float32", [2, 7]]], [[3, "float32", [3, 7]]], {}, 18446744073709520635, "MmBackward0"],
            [2, "u", 0, [[1, "float32", [3, 7]], [3, "float32", [3, 7]]], [], {"fused": true}, 0, ""],
            [0, "u", 0, [], [], {}, 0, ""]],
    "storages": [[24, "cuda"], [84, "cuda"], [56, "cuda"], [84, "cuda"], [8, "cpu"]],
    "frees": [[5, 2], [6, 0]],
    "roots": {"0": ["input", "x"], "1": ["param", "fc.weight"]},
    "status": "ok",
    "mem": {"peak_allocated": 1000, "peak_reserved": 2000, "peak_active": 1100, "peak_requested": 900, "allocated": 500},
    "time_ms": {"pipelined_median": 1.5, "synced": [1, 2]},
    "kernel_names": ["gemm"],
    "kernels": [[0, 0, 10.5, 7, 0, 1, 0, 1], [0, 0, 2, 7, 0, 1, 0, 3], [0, 0, 3, 7, 0, 1, 0, 3], [0, 0, 1, 7, 0, 1, 0, -1]],
    "profile": {"phases": {"forward": [0, 5], "backward": [6, 16], "update": [20, 40.5]}, "aligned": false}
  })");
}

// The same step as run/2, with strides: the weight is transposed, the gradient contiguous, and two views of storage 0
// lie at different offsets.
inline nlohmann::json small_record_2() {
  return nlohmann::json::parse(R"({
    "schema": "run/2", "id": "hand/00002", "status": "ok", "backend": "generic", "family": "mlp", "args": {"h": 7},
    "input": ["flat", 2, 3, 0, 7],
    "run": {"precision": "amp_bf16", "channels_last": true, "cudnn_benchmark": false, "accumulate": 2,
            "optimizer": {"name": "SGD", "impl": "fused", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}},
    "env": {"gpu": "NVIDIA H200", "torch": "2.11.0", "cuda": "13.0", "cudnn": 91900, "driver": "580", "cpu": "x",
            "host": "a1b2", "date": "2026-01-01"},
    "host_us": {"view": 3.5, "add": 9, "backward": {"view": 7.25}},
    "params": 21, "param_tensors": 1, "mem_init": 84, "base_allocated": 0,
    "mem": {"peak_allocated": 1000, "peak_reserved": 2000, "peak_active": 1100, "peak_requested": 900, "allocated": 500,
            "segments": 3, "retries": 1, "device_used": 9000, "device_total": 10000},
    "time_ms": {"pipelined_median": 1.5, "synced_median": 2.5, "synced": [1, 2], "pipelined": [1.5]},
    "op_names": ["aten.mm.default", "aten._fused_sgd_.default"], "modules": ["", "fc"], "module_types": {"": "Mlp"},
    "dtypes": ["float32"], "shapes": [[2, 3], [3, 7], [1, 3], [2, 7], [3, 2]],
    "attributes": [{"p": 0.5, "d": [1, 2]}, {}, {"fused": true}], "nodes": ["MmBackward0"],
    "tensors": {"storage": [0, 1, 2, 0, 3], "dtype": [0, 0, 0, 0, 0], "shape": [0, 1, 3, 4, 1],
                "strides": [-1, 2, -1, 2, -1], "offset": [0, 0, 0, 1, 0]},
    "ops": {"name": [0, 0, 1], "phase": "fbu", "module": [1, 1, -1], "inputs": [[0, 1], [3, 2], [1, 4]],
            "outputs": [[2], [4], []], "attributes": [0, 1, 2], "sequence": [1, -1, 0], "node": [-1, 0, -1]},
    "storages": {"bytes": [28, 84, 56, 84, 8], "host": [4]},
    "frees": {"op": [2], "storage": [2]},
    "roots": {"storage": [0, 1], "kind": "ip", "name": ["x", "fc.weight"]},
    "kernel_names": ["gemm"],
    "kernels": {"name": [0, 0, 0, 0], "start": [2000, 11000, 3000, 4000], "ns": [10500, 2000, 3000, 1000],
                "stream": [7, 7, 7, 7], "launch": [100, 100, 100, 100], "launch_ns": [50, 50, 50, 50],
                "thread": [0, 1, 1, 0], "op": [0, 1, 1, -1], "captured_ns": [10400, 2100, 3000, 1000]},
    "profile": {"phases": {"forward": [0, 5], "backward": [6, 16], "update": [20, 40.5]}, "sync": [], "aligned": true},
    "alloc_trace": {"action": "SaarfX", "address": [0, 0, 4, 4, 4, 0], "size": [2097152, 1000, 512, 512, 512, 2097152],
                    "stream": [0, 0, 0, 0, 0, 0], "address_base": 140000000000000, "marks": [[1, "model"], [3, "forward"]]},
    "cost_s": 1.5
  })");
}

// One op timed alone.
inline nlohmann::json small_sample() {
  return nlohmann::json::parse(R"({
    "schema": "op/1", "id": "3f1c", "grid": "gemm", "op": "aten.mm.default", "attributes": {"alpha": 2},
    "inputs": [["int64", [3], null], ["bfloat16", [8, 4], null], ["bfloat16", [4, 2], [1, 4]], null],
    "outputs": [["bfloat16", [8, 2], null]], "precision": "tf32", "status": "ok", "us": 4.25, "spread": 0.03,
    "kernels": [["gemm_kernel", 4.0], ["reduce", 0.25]], "workspace": 1024
  })");
}

// The first difference between two graphs; empty where they are the same.
inline std::string difference(const Graph& a, const Graph& b) {
  if (a.op_count() != b.op_count() || a.tensors().size() != b.tensors().size()) return "number of ops or tensors";
  if (a.storages().size() != b.storages().size()) return "number of storages";
  if (a.parameter_count() != b.parameter_count() || a.parameter_tensors() != b.parameter_tensors()) return "parameters";
  for (size_t i = 0; i < a.op_count(); ++i) {
    const Op& x = a.ops()[i];
    const Op& y = b.ops()[i];
    const bool same = a.name(x) == b.name(y) && a.module(x) == b.module(y) && x.phase == y.phase &&
                      x.sequence == y.sequence && a.names()[x.autograd_node] == b.names()[y.autograd_node] &&
                      a.attributes(x).entries() == b.attributes(y).entries() &&
                      std::ranges::equal(a.inputs(x), b.inputs(y)) && std::ranges::equal(a.outputs(x), b.outputs(y));
    if (!same) return "op " + std::to_string(i) + ", " + a.attributes(x).to_json() + " " + b.attributes(y).to_json();
  }
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    const Tensor& x = a.tensors()[i];
    const Tensor& y = b.tensors()[i];
    if (x.storage != y.storage || x.dtype != y.dtype ||
        !std::ranges::equal(a.shape(TensorId(i)), b.shape(TensorId(i))) || x.strides.valid() != y.strides.valid() ||
        !std::ranges::equal(a.strides(TensorId(i)), b.strides(TensorId(i)))) {
      return "tensor " + std::to_string(i);
    }
  }
  for (size_t i = 0; i < a.storages().size(); ++i) {
    const Storage& x = a.storages()[i];
    const Storage& y = b.storages()[i];
    if (x.bytes != y.bytes || x.on_gpu != y.on_gpu || x.root != y.root || x.freed_before != y.freed_before ||
        a.names()[x.root_name] != b.names()[y.root_name]) {
      return "storage " + std::to_string(i);
    }
  }
  return "";
}

}  // namespace forerun
