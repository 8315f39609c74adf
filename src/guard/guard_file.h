// forerun.toml: the guards of a project (docs/check.md).
//
//   [defaults]                # words for all guards
//   gpu = "a100"
//   fits = true
//
//   [guard.resnet50]          # a name of one's own
//   model = "resnet50"
//   batch = 64
//   slower_than_baseline = "10%"
//
// A guard's words are those of `predict` and of the rules; what they mean is the reader's affair (ask/check.cpp). A list of
// GPUs makes a guard of each.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::guard {

struct GuardEntry {
  std::string name;   // "resnet50"; with several GPUs "resnet50 on a100"
  std::string place;  // "forerun.toml, line 5, guard resnet50"
  std::string asked;  // what is predicted: its words and those of [defaults] but the rules, as a JSON object, sorted
  std::string words;  // the same with the rules, and with files as they lie from here: relative to the TOML file there
};

Result<std::vector<GuardEntry>> read_guards(const std::string& path);
Result<std::vector<GuardEntry>> parse_guards(const std::string& text, const std::string& path);

}  // namespace forerun::guard
