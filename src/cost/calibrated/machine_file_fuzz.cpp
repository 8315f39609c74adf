// Fuzzes the reader of machine.json and what is made of its readings: a graph of its ops, their work, and a correction.
#include <cstdint>

#include "base/fuzz_file.h"
#include "cost/calibrated/machine.h"
#include "derive/work.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forerun::FuzzFile file(data, size);
  const auto machine = forerun::read_machine(file.path());
  if (!machine.ok()) {
    CHECK(!machine.error().what.empty() && !machine.error().where.empty(), "an error without what or where");
    return 0;
  }
  std::vector<const forerun::OpReading*> readings;
  for (const forerun::OpReading& reading : machine->ops) {
    CHECK(reading.us > 0 && reading.span_us > 0, "a reading without a time");
    readings.push_back(&reading);
  }
  const forerun::Graph graph = forerun::graph_of(readings);
  CHECK(graph.op_count() == readings.size(), "an op of the graph for each reading");
  for (const forerun::Op& op : graph.ops()) (void)forerun::work_of(graph, op);
  (void)forerun::median_of(machine->host_cuda);
  (void)machine->card.missing();
  return 0;
}
