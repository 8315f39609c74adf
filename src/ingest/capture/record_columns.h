// RecordColumns: the fields of one run record as flat tables, whichever of its three forms it came in.
//
// The tables view the record's text and the decoder's buffers: they hold until the next record is decoded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/training_run.h"
#include "ingest/capture/allocator_trace.h"
#include "ingest/capture/measurement.h"
#include "ingest/capture/size_forms.h"

namespace forerun {

// Which fields of a record are looked at; the others are passed over unread.
enum class Fields : uint8_t {
  inputs,                   // what a predictor may see
  inputs_and_measurements,  // but for the allocator's trace
  description,              // what the run is and what was measured, without its graph
  everything,
};

// The fields read, by name in the file: what the run is, its graph from `op_names` on, measurements from `status` on, and
// what only Fields::everything asks for from `kernel_names` on.
enum class RecordField : uint8_t {
  schema,
  id,
  backend,
  family,
  args,
  input,
  run,
  env,
  host_us,
  params,
  param_tensors,
  warnings,
  assumed,
  op_names,
  modules,
  dtypes,
  shapes,
  attributes,
  nodes,
  tensors,
  ops,
  storages,
  frees,
  roots,
  parametric,
  dynamo,
  status,
  error,
  tried,
  mem,
  mem_init,
  base_allocated,
  time_ms,
  kernels,
  profile,
  kernel_names,
  alloc_trace,
};
inline constexpr size_t kRecordFields = 37;
std::string_view name_of(RecordField field);
std::optional<RecordField> record_field_named(std::string_view name);
bool is_wanted(RecordField field, Fields fields);

// What no record may exceed.
struct RecordLimits {
  // Sequence numbers that do not fit become this one: autograd gives gradient accumulation (AccumulateGrad), which is
  // nobody's backward, numbers near 2^64. run/2 has -1 there.
  static constexpr uint32_t kNoSequence = 0xFFFFFFFE;
  static constexpr int64_t kMostElements = int64_t{1} << 46;  // of one tensor
  static constexpr int64_t kMostBytes = int64_t{1} << 60;     // of one storage
  static constexpr size_t kHighestRank = 64;                  // PyTorch's own limit
  static constexpr int64_t kMostNanoseconds = int64_t{1} << 52;
};

struct ExtentsRow {
  uint32_t first = 0;  // in RecordColumns::extents
  uint32_t rank = 0;
};

struct TensorRow {
  static constexpr int64_t kContiguous = -1;
  static constexpr int64_t kUnknown = -2;  // run/1 does not tell

  uint32_t storage = 0;
  DType dtype = DType::float32;
  uint32_t shape = 0;          // in RecordColumns::shapes
  int64_t strides = kUnknown;  // in RecordColumns::shapes, or one of the above
  int64_t offset = 0;          // elements
};

struct OpRow {
  uint32_t name = 0;
  Phase phase = Phase::forward;
  int64_t module = -1;         // -1: outside any
  uint32_t first_operand = 0;  // in RecordColumns::operands: inputs, then outputs
  uint32_t input_count = 0;
  uint32_t output_count = 0;
  uint32_t sequence = 0;
  std::string_view attributes;  // JSON text
  std::string_view autograd_node;
};

// Ops of a model that Dynamo compiles together.
struct PieceRow {
  uint32_t first = 0;  // op
  uint32_t end = 0;    // behind the last
  uint16_t piece = 0;  // from 1; the same in every micro-batch
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
  int64_t ns = 0;
  int64_t op = -1;
  // With Fields::everything only:
  int64_t name = 0;
  int64_t start_ns = 0;  // from the start of the forward phase
  int64_t stream = 0;
  // Where RecordColumns::has_launches:
  int64_t launch_ns = 0;
  int64_t launch_duration_ns = 0;
  int64_t thread = 0;
};

struct RecordColumns {
  uint64_t seen = 0;  // a bit per RecordField
  [[nodiscard]] bool has(RecordField field) const { return (seen >> static_cast<unsigned>(field) & 1U) != 0; }

  std::string id, family, arguments = "{}";
  Backend backend = Backend::cuda;
  InputSpec input;
  TrainingSetup setup;
  Environment environment;
  int64_t parameter_count = 0;
  int64_t parameter_tensors = 0;
  std::vector<std::string_view> warnings, assumed;
  std::vector<std::string_view> op_names, modules;
  std::vector<std::string_view> attributes;  // the table that ops name entries of; empty in run/1
  std::vector<OpRow> ops;
  std::vector<uint32_t> operands;  // tensors
  std::vector<TensorRow> tensors;
  std::vector<ExtentsRow> shapes;
  std::vector<int64_t> extents;
  std::vector<StorageRow> storages;
  std::vector<FreeRow> frees;
  std::vector<RootRow> roots;
  SizeForms forms;
  DynamoTrace dynamo;
  std::vector<PieceRow> pieces;  // in order
  std::vector<KernelRow> kernels;
  bool has_launches = false;  // the kernels tell when each was launched; run/3 leaves that out
  size_t kernel_name_count = 0;
  Measurement measured;  // without what needs the graph
  AllocatorTrace trace;

  void clear();
};

}  // namespace forerun
