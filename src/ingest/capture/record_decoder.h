// RecordDecoder: the JSON text of one run/1 record -> RecordColumns, its fields as flat tables.
//
// Checks what can be told from one field alone: types, arity, ranges of extents and sizes, known names. What needs two
// fields (does an op name a storage that exists?) is for run_record.cpp, so the fields may come in any order. The
// tables view the record's text and the decoder's own buffers: they hold until the next decode().
//
//   {"schema": "run/1", "id": "starter/00000-rnn", "family": "rnn", "args": {"h": 256},
//    "input": ["tokens", 33, 256, 32000, "lm"],
//    "run": {"precision": "fp32", "optimizer": {"name": "SGD", "impl": "foreach", "lr": 0.1}, "channels_last": false},
//    "env": {"gpu": "NVIDIA H200", "torch": "2.11.0", "cuda": "13.0", "cudnn": 91900},
//    "params": 42, "param_tensors": 2, "op_names": ["aten.mm.default"], "modules": ["", "out"],
//    "ops": [[0, "f", 1, [[0, "float32", [2, 3]], [1, "float32", [3, 7]]], [[2, "float32", [2, 7]]], {}, 1, ""]],
//    "storages": [[24, "cuda"], [84, "cuda"], [56, "cuda"]], "frees": [[1, 2]],
//    "roots": {"1": ["param", "out.weight"]},
//    ... and what was measured: "status", "mem", "time_ms", "kernels", "profile"}
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/training_run.h"
#include "ingest/capture/attribute_decoder.h"

namespace forerun {

// Which fields of a record are looked at. With `inputs` the measured ones are passed over unread.
enum class Fields : uint8_t { inputs, inputs_and_measurements };

// The fields read, by name in the file. Those from `status` on are measurements.
enum class RecordField : uint8_t {
  schema,
  id,
  family,
  args,
  input,
  run,
  env,
  params,
  param_tensors,
  op_names,
  modules,
  ops,
  storages,
  frees,
  roots,
  status,
  mem,
  time_ms,
  kernels,
  profile,
};
inline constexpr size_t kRecordFields = 20;
std::string_view name_of(RecordField field);

struct OperandRow {
  uint32_t storage = 0;
  DType dtype = DType::float32;
  uint32_t first_extent = 0;
  uint32_t rank = 0;
};

struct OpRow {
  uint32_t name = 0;
  Phase phase = Phase::forward;
  int64_t module = -1;  // -1: outside any
  uint32_t first_operand = 0;
  uint32_t input_count = 0;
  uint32_t output_count = 0;
  uint32_t sequence = 0;
  std::string_view attributes;  // JSON text
  std::string_view autograd_node;
};

struct StorageRow {
  Bytes bytes;
  bool on_gpu = true;
};

struct FreeRow {
  uint64_t op = 0;
  uint64_t storage = 0;
};

struct RootRow {
  uint64_t storage = 0;
  Root root = Root::none;
  std::string_view name;
};

struct KernelRow {
  double us = 0;
  int64_t op = -1;
};

struct MeasuredNumbers {
  bool out_of_memory = false;
  double pipelined_median_ms = 0;
  Bytes peak_allocated, peak_reserved, peak_active, peak_requested, allocated;
  std::array<double, 3> host_us = {};  // by Phase
  bool aligned = true;
};

struct RecordColumns {
  uint32_t seen = 0;  // a bit per RecordField
  [[nodiscard]] bool has(RecordField field) const { return (seen >> static_cast<unsigned>(field) & 1U) != 0; }

  std::string id, family, arguments = "{}";
  InputSpec input;
  TrainingSetup setup;
  Environment environment;
  int64_t parameter_count = 0;
  int64_t parameter_tensors = 0;
  std::vector<std::string_view> op_names, modules;
  std::vector<OpRow> ops;
  std::vector<OperandRow> operands;
  std::vector<int64_t> extents;
  std::vector<StorageRow> storages;
  std::vector<FreeRow> frees;
  std::vector<RootRow> roots;
  std::vector<KernelRow> kernels;
  MeasuredNumbers measured;

  void clear();
};

class RecordDecoder {
 public:
  // Sequence numbers that do not fit become this one: autograd gives gradient accumulation (AccumulateGrad), which is
  // nobody's backward, numbers near 2^64.
  static constexpr uint32_t kNoSequence = 0xFFFFFFFE;
  static constexpr int64_t kMostElements = int64_t{1} << 46;  // of one tensor
  static constexpr int64_t kMostBytes = int64_t{1} << 60;     // of one storage
  static constexpr size_t kHighestRank = 64;                  // PyTorch's own limit

  RecordDecoder();
  RecordDecoder(RecordDecoder&&) noexcept;
  RecordDecoder& operator=(RecordDecoder&&) noexcept;
  ~RecordDecoder();

  // `text` must be followed by LineReader::kPadding readable bytes. On an Error, `columns` holds what came before.
  Status decode(std::string_view text, Fields fields, RecordColumns& columns);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
