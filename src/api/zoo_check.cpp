#include "api/zoo_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "derive/cuda_forms.h"
#include "derive/iteration.h"
#include "ingest/capture/run_record.h"
#include "ingest/importers.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

struct Tally {
  FamilyCheck check;
  std::map<std::string, OpMiss> misses;
  std::map<std::string, OpMiss> surplus;
};

void add_miss(std::map<std::string, OpMiss>& table, const std::string& key, int64_t count, double gpu_us,
              const std::string& id) {
  OpMiss& miss = table[key];
  if (miss.count == 0) {
    miss.op = key;
    miss.example = id;
  }
  miss.count += count;
  miss.gpu_us += gpu_us;
}

// Misses are grouped by phase and name: shapes differ from record to record.
std::string group_of(const Graph& graph, const Op& op) {
  return fmt::format("{} {}", name_of(op.phase), graph.name(op));
}

void compare(const RunRecord& record, const Graph& derived, Tally& tally) {
  const Graph& captured = record.run.graph;
  std::unordered_map<std::string, int64_t> available;
  for (const Op& op : derived.ops()) ++available[signature(derived, op)];
  FamilyCheck& check = tally.check;
  ++check.records;
  for (size_t i = 0; i < captured.op_count(); ++i) {
    const Op& op = captured.ops()[i];
    const double gpu_us = record.measured ? record.measured->op_gpu_us[i] : 0;
    ++check.ops;
    check.gpu_us += gpu_us;
    int64_t& left = available[signature(captured, op)];
    if (left > 0) {
      --left;
      ++check.matched_ops;
      check.matched_gpu_us += gpu_us;
    } else {
      add_miss(tally.misses, group_of(captured, op), 1, gpu_us,
               fmt::format("{} op {}: {}", record.run.id, i, signature(captured, op)));
    }
  }
  for (const Op& op : derived.ops()) {
    int64_t& left = available[signature(derived, op)];
    if (left <= 0) continue;
    --left;
    ++check.surplus_ops;
    add_miss(tally.surplus, group_of(derived, op), 1, 0, fmt::format("{}: {}", record.run.id, signature(derived, op)));
  }
}

std::vector<OpMiss> ranked(const std::map<std::string, OpMiss>& table) {
  std::vector<OpMiss> rows;
  for (const auto& [key, miss] : table) rows.push_back(miss);
  std::stable_sort(rows.begin(), rows.end(), [](const OpMiss& a, const OpMiss& b) {
    return a.gpu_us != b.gpu_us ? a.gpu_us > b.gpu_us : a.count > b.count;
  });
  return rows;
}

}  // namespace

std::string signature(const Graph& graph, const Op& op) {
  std::string text = fmt::format("{} {}", name_of(op.phase), graph.name(op));
  const auto add = [&](TensorId id) {
    text += fmt::format(" {}[{}]", name_of(graph.tensor(id).dtype), fmt::join(graph.shape(id), ","));
  };
  for (const TensorId id : graph.inputs(op)) add(id);
  text += " ->";
  for (const TensorId id : graph.outputs(op)) add(id);
  return text;
}

Result<ZooCheck> check_zoo(const std::string& path, const WorkControl& control) {
  Work work(control, "records");
  if (const auto kind = file_for("zoo check", path); !kind) return kind.error();
  Result<RunRecordReader> reader = RunRecordReader::open(path, Fields::inputs_and_measurements);
  if (!reader) return reader.error();
  ZooCheck result;
  std::map<std::string, Tally> tallies;
  while (true) {
    if (const Status status = work.advance(); !status.ok()) return status.error();
    Result<std::optional<RunRecord>> next = reader->next();
    if (!next) {
      if (reader->file_broken()) return next.error();
      result.problems.push_back(next.error().message());
      continue;
    }
    if (!next->has_value()) break;
    RunRecord& record = **next;
    if (!record.has_graph) continue;
    TrainingRun& run = record.run;
    if (run.backend == Backend::generic) {
      Result<Graph> mapped = derive::to_cuda_forms(run.graph, derive::DispatchTarget{});
      if (!mapped) {
        result.problems.push_back(mapped.error().within(run.id).message());
        continue;
      }
      run.graph = std::move(*mapped);
      record.measured.reset();  // by op of the graph as it was recorded
    }
    const Result<zoo::Model> model = zoo::build_recorded(run.family, run.arguments, run.input);
    if (!model) {
      result.problems.push_back(model.error().within(run.id).message());
      continue;
    }
    const Result<Graph> derived = derive::derive_iteration(model->forward, run.input, run.setup);
    if (!derived) {
      result.problems.push_back(derived.error().within(run.id).message());
      continue;
    }
    Tally& tally = tallies[run.family];
    tally.check.family = run.family;
    compare(record, *derived, tally);
  }
  for (auto& [family, tally] : tallies) {
    tally.check.misses = ranked(tally.misses);
    tally.check.surplus = ranked(tally.surplus);
    result.families.push_back(std::move(tally.check));
  }
  return result;
}

}  // namespace forerun
