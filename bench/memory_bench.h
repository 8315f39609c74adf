// How fast memory is answered: events of recorded allocator traces replayed per second on one core, milliseconds per 1,000
// ops for the peaks of a recorded run (three iterations), and seconds for the largest batch of two models.
//
// Records are read beforehand. The replayed peaks are looked at before their time counts.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "api/fit.h"
#include "base/check.h"
#include "ingest/capture/run_record.h"
#include "memory/trace_replay.h"
#include "predict/cost_models.h"
#include "predict/predicted_memory.h"
#include "trace_bench.h"

namespace forerun::bench {

inline bool time_memory(const std::string& path, const Device& device, const CostModels& cost_models) {
  if (!std::filesystem::exists(path)) {
    fmt::print("memory of recorded runs: not measured, {} is absent\n", path);
    return true;
  }
  auto reader = RunRecordReader::open(path, Fields::everything);
  CHECK(reader.ok(), reader.error().message());
  int64_t events = 0;
  int64_t wrong = 0;
  double replaying = 0;
  std::vector<double> per_thousand_ops;
  while (true) {
    const auto record = reader->next();
    if (!record || !record->has_value()) break;
    if (const auto& trace = (*record)->allocator; trace && (*record)->measured) {
      const double before = processor_seconds();
      const TraceReplay replay = replay_trace(*trace, {}, (*record)->measured->base_allocated.value);
      replaying += processor_seconds() - before;
      events += replay.events;
      wrong += replay.figures.requested.peak != (*record)->measured->peak_requested.value ? 1 : 0;
    }
    if (!(*record)->has_graph || (*record)->run.graph.op_count() == 0) continue;
    const double before = processor_seconds();
    const PredictedMemory memory = predicted_memory((*record)->run, device, cost_models.workspaces);
    if (memory.estimate.peak_allocated.value <= 0) return false;
    per_thousand_ops.push_back((processor_seconds() - before) * 1e6 /
                               static_cast<double>((*record)->run.graph.op_count()));
  }
  if (events == 0 || wrong > 0 || per_thousand_ops.empty()) {
    fmt::print("allocator traces: {} events, {} peaks wrong\n", events, wrong);
    return false;
  }
  std::sort(per_thousand_ops.begin(), per_thousand_ops.end());
  fmt::print("{:<34}{:>10.1f} million events/s {:>11} events\n", "allocator traces replayed",
             static_cast<double>(events) * 1e-6 / replaying, events);
  fmt::print("{:<34}{:>10.2f} ms median {:>9.2f} ms p90 {:>10} records\n", "memory of 1,000 ops, 3 iterations",
             per_thousand_ops[per_thousand_ops.size() / 2], per_thousand_ops[per_thousand_ops.size() * 9 / 10],
             per_thousand_ops.size());
  return true;
}

// From a model's name to its largest batch, with what would let a larger one in.
inline bool time_fit(const std::string& model, const Device& device, const CostModels& cost_models) {
  FitRequest request;
  request.model.model = model;
  const auto begin = std::chrono::steady_clock::now();
  const Result<FitAnswer> answer = fit(request, device, cost_models);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!answer || !answer->largest) return false;
  fmt::print("{:<34}{:>10.2f} s {:>15} graphs\n", fmt::format("fit {}: largest batch {}", model, *answer->largest),
             seconds, answer->graphs);
  return true;
}

}  // namespace forerun::bench
