// TracedOp: an op as a profiler trace recorded it, and the same op as a graph of one, so that cost models can be asked
// about it.
//
// Traces have the shapes and types of inputs (with record_shapes) and, in newer files, the values of scalars. Results are
// inferred for the ops that cost models are asked about: products, convolutions, normalisation, attention.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/training_run.h"
#include "ingest/trace/trace.h"

namespace forerun::whatif {

struct TracedTensor {
  std::vector<int64_t> shape;
  std::string type;                        // "float", "c10::BFloat16"; "" where the argument is no tensor
  std::vector<std::vector<int64_t>> list;  // of a list of tensors: their shapes, where the file has them
};

// The type of a tensor argument by its C++ name in a trace; nothing for scalars, lists and what is absent.
std::optional<DType> dtype_traced(const std::string& type);

struct TracedOp {
  std::string name;                  // "aten::addmm"
  std::vector<TracedTensor> inputs;  // all arguments; scalars have no shape and type "Scalar"
  std::vector<std::string> values;   // of scalars: "[2, 2]"; may be empty

  [[nodiscard]] int64_t elements(size_t input) const;  // 0 where the argument is no tensor
  // Values of scalar arguments; the default where the file does not tell.
  [[nodiscard]] std::vector<int64_t> ints(size_t argument) const;  // "[2, 2]"; empty where it is something else
  [[nodiscard]] int64_t integer(size_t argument, int64_t otherwise) const;
  [[nodiscard]] double number(size_t argument, double otherwise) const;
  [[nodiscard]] bool flag(size_t argument, bool otherwise) const;
};

// Nothing where the file has no shapes of it.
std::optional<TracedOp> traced_op(const Trace& trace, EventIndex op);

// Whether it was recorded in half precision, as ops are under autocast.
bool in_half(const TracedOp& op);

// How an op is run.
struct Variant {
  Precision precision = Precision::fp32;
  bool channels_last = false;
};

// A graph of this one op in the variant; nothing where the op is not one whose results are known here.
std::optional<Graph> graph_of(const TracedOp& op, const Variant& variant);

}  // namespace forerun::whatif
