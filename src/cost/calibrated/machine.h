// Machine: what `python -m forerun.calibrate` read of one machine, from the file machine.json that it wrote.
//
//   {"format": "machine/1",
//    "card": {"gpu": "NVIDIA A100-SXM4-80GB", "host": "c0ffee00", "cpu": "AMD EPYC", "torch": "2.11.0", "date": "2026-11-17",
//             "driver": "580.1", "cuda": "13.0", "minutes": 5.0, ...},
//    "gpu": {"device": {"name": ..., "compute_capability": 80, "sm_count": 108, "memory_mib": 81156, "l2_kib": 40960,
//                       "clock_mhz": 1410, "power_w": 400}, "queued_kernel_us": 2.3,
//            "ops": [{"op": "aten.mm.default", "precision": "fp32", "inputs": [["float32", [8, 4], null], null],
//                     "outputs": [...], "attributes": {}, "us": 4.2, "span_us": 4.3, "spread": 0.03, "kernels": 1}]},
//    "host": {"cuda": [{"view": 3.1, "add": 9.0, ..., "backward": {"view": 7.5}}], "cpu": [...]},
//    "links": [{"kind": "host_to_device", "bytes": 1048576, "us": 25.1}]}
// It holds readings alone: what follows from them is worked out where they are used (gpu_correction.h), so that better models
// make old files better. `gpu` is missing where the host alone was read. docs/calibrate.md has every field.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/attribute.h"
#include "graph/dtype.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun {

inline constexpr const char* kMachineFormat = "machine/1";

struct ReadTensor {
  DType dtype = DType::float32;
  Shape shape;
  std::optional<Shape> strides;  // missing: contiguous
};

// An op that was timed on the GPU, alone or among others.
struct OpReading {
  std::string op;
  Precision precision = Precision::fp32;
  std::vector<std::optional<ReadTensor>> inputs, outputs;  // missing: an optional tensor that was not given
  Attributes attributes;
  double us = 0;       // of its kernels together
  double span_us = 0;  // from the first to the last
  double spread = 0;   // of the repetitions, in parts of the median
  int64_t kernels = 1;
  double again_us = 0;  // span of the same op timed once more later; 0: it was not
  bool within = false;  // an iteration of a small network, where operands may lie in the cache; else alone
};

// The GPU as its driver describes it; 0: it does not say.
struct DeviceFacts {
  std::string name;
  int compute_capability = 0;
  int64_t sm_count = 0;
  double memory_mib = 0;
  double l2_kib = 0;
  double clock_mhz = 0;
  double power_w = 0;
};

struct LinkReading {
  std::string kind;  // "host_to_device", "all_reduce"
  int64_t gpus = 1;
  double bytes = 0;
  double us = 0;
};

struct MachineCard {
  std::string gpu, driver, cuda, torch, cpu, host, date;
  double minutes = 0;
  // The first field that a card needs and this one does not have; empty: it is whole.
  [[nodiscard]] std::string missing() const;
};

struct Machine {
  MachineCard card;
  std::optional<DeviceFacts> device;  // missing: the host alone was read
  std::vector<OpReading> ops;
  double queued_kernel_us = 0;                       // from one small kernel to the next in a queue; 0: not read
  std::vector<HostCalibration> host_cuda, host_cpu;  // a set a round: on tensors of the GPU, and of the host
  std::vector<LinkReading> links;
};

Result<Machine> read_machine(const std::filesystem::path& file);
// The same from text; `where` stands for the file in errors.
Result<Machine> machine_from(const std::string& text, const std::string& where);

// The median of each kind of reading that all rounds have.
HostCalibration median_of(const std::vector<HostCalibration>& rounds);

// The readings of one precision as the ops of a graph, in their order.
Graph graph_of(const std::vector<const OpReading*>& readings);

}  // namespace forerun
