// "A question as JSON -> its answer as JSON": what Python asks through, and whoever else has no C++.
//
//   Knowledge knowledge;
//   answer("predict", R"({"model": "resnet50", "gpu": "h100", "batch": 64})", knowledge);
//
// Words are those of the program's options with '_' for '-' and mean the same; answers are what the verb of that name prints
// with --json, several ones a line each. What has many rows (ops, memory over time, jobs) is a question of its own, answered
// in columns. Questions may be asked from several threads at once. Nothing that is asked ends the process: what makes no
// sense is an Error.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ask/kept_traces.h"
#include "ask/knowledge.h"
#include "base/work_control.h"
#include "cluster/policies.h"

namespace forerun::ask {

// What a question is asked with, beside its words.
struct Asking {
  Knowledge& knowledge;
  WorkControl control = {};
  std::map<std::string, cluster::PolicyMaker> policies =
      {};                        // of the asker's own, by the name that `schedule` gives them
  KeptTraces* traces = nullptr;  // where the asker keeps them from question to question
  bool beside_others = false;    // other processes answer at the same time: what is short takes one thread
};

// The names of the questions there are.
std::vector<std::string> questions();

Result<std::string> answer(std::string_view name, std::string_view question, const Asking& asking);

}  // namespace forerun::ask
