// Fuzzes the readers of execution traces: any bytes give a trace that keeps its promises, or an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ingest/chakra/execution_trace.h"

namespace {

void check_nodes(const forerun::ExecutionTrace& trace) {
  CHECK(!trace.nodes.empty(), "a trace without nodes");
  for (const forerun::ExecutionNode& node : trace.nodes) {
    CHECK(node.name.value < trace.names.size(), "a name out of range");
    CHECK(size_t{node.first_dependency} + node.control + node.data <= trace.dependencies.size(),
          "dependencies out of range");
    CHECK(node.duration_us >= -1 && node.start_us >= -1, "a negative time");
    if (node.inputs.values.valid()) {
      CHECK(forerun::tensor_bytes(trace.names[node.inputs.values]) >= 0, "a negative number of bytes");
    }
  }
  for (const forerun::ExecutionCollective& collective : trace.collectives) {
    CHECK(collective.node < trace.nodes.size() && collective.bytes >= -1, "a collective of no node");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)forerun::looks_like_chakra(bytes);
  const auto trace = forerun::execution_trace_from_bytes(bytes, "fuzz.et");
  if (trace.ok()) {
    check_nodes(*trace);
  } else {
    CHECK(!trace.error().what.empty() && !trace.error().where.empty(), "an error without what or where");
  }
  return 0;
}
