// How well the zoo and the derivation reproduce what PyTorch really dispatched: recorded runs against derived ones.
#pragma once

#include <string>

#include "base/work_control.h"
#include "graph/graph.h"

namespace forerun {

struct OpMiss {
  std::string op;     // "f aten.mm.default float32[8, 4] ... -> ..."
  int64_t count = 0;  // captured ops without a counterpart
  double gpu_us = 0;
  std::string example;  // id of a record that has it
};

struct FamilyCheck {
  std::string family;
  int64_t records = 0;
  int64_t ops = 0;
  int64_t matched_ops = 0;
  double gpu_us = 0;
  double matched_gpu_us = 0;
  int64_t surplus_ops = 0;     // derived ops without a captured counterpart
  std::vector<OpMiss> misses;  // by name, phase and kind of operand, costliest first
  std::vector<OpMiss> surplus;

  [[nodiscard]] double by_count() const {
    return ops == 0 ? 0 : static_cast<double>(matched_ops) / static_cast<double>(ops);
  }
  [[nodiscard]] bool has_times() const { return gpu_us > 0; }  // false: the records were captured, not measured
  [[nodiscard]] double by_time() const { return has_times() ? matched_gpu_us / gpu_us : 0; }
};

struct ZooCheck {
  std::vector<FamilyCheck> families;
  std::vector<std::string> problems;  // records that could not be read or built, with the reason
};

// Compares every record of a run/1 file that has a graph and whose family is in the zoo.
// Two ops are counterparts if name, phase, and the types and shapes of all inputs and outputs agree.
Result<ZooCheck> check_zoo(const std::string& path, const WorkControl& control = {});

// The counterpart key of an op.
std::string signature(const Graph& graph, const Op& op);

}  // namespace forerun
