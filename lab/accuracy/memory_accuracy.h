// MemoryAccuracy: how near predicted peaks of memory come to measured ones, ours beside what others do, as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "memory/memory_intervals.h"

namespace forerun {

// A run that was measured, and one predictor's answer for it. Bytes; 0: not measured, or not predicted.
struct MemoryCase {
  std::string id, family;
  double measured_allocated = 0, measured_reserved = 0;
  double allocated = 0, reserved = 0;
  bool at_the_limit = false;  // it ran out of memory, or nearly
  bool did_fit = true;
  bool said_to_fit = true;
};

struct MemoryPredictor {
  std::string name;
  std::vector<MemoryCase> cases;
  std::string note;  // why there are none, or on what it is judged
};

struct MemoryAccuracy {
  std::string data;    // what was judged on, in words
  std::string tables;  // which tables ours were predicted with
  std::vector<MemoryPredictor> predictors;
  MemoryIntervals intervals;
};

std::string to_text(const MemoryAccuracy& accuracy);
std::string to_json(const MemoryAccuracy& accuracy);  // one object

}  // namespace forerun
