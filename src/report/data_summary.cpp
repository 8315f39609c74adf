#include "report/data_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/table.h"

namespace forerun {
namespace {

constexpr size_t kOpsShown = 40;

using Json = nlohmann::ordered_json;

std::vector<std::pair<std::string, int64_t>> by_count(const Counts& counts) {
  std::vector<std::pair<std::string, int64_t>> list(counts.begin(), counts.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return list;
}

// "fp32 400, amp_bf16 300", most first.
std::string counts_text(const Counts& counts) {
  std::string text;
  for (const auto& [name, count] : by_count(counts)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, grouped(count));
  }
  return text.empty() ? "none" : text;
}

std::vector<std::string> row(const std::string& family, const FamilySummary& f) {
  return {family,
          f.split.empty() ? "-" : f.split,
          grouped(f.records),
          grouped(f.ok),
          grouped(f.oom),
          grouped(f.failed),
          grouped(f.near_limit),
          grouped(f.gpu_bound),
          grouped(f.host_bound)};
}

std::string runs_text(const DataSummary& s) {
  Table table({"family", "split", "records", "ok", "oom", "failed", "near limit", "GPU-bound", "host-bound"});
  table.align_left(1);
  for (const auto& [family, count] : s.families) table.add(row(family, count));
  FamilySummary all = s.all();
  table.add(row("all", all));
  Table lines({"  by split", counts_text(s.splits)});
  lines.align_left(1);
  lines.add({"  by precision", counts_text(s.precisions)});
  lines.add({"  by optimizer", counts_text(s.optimizers)});
  lines.add({"  by layout", counts_text(s.layouts)});
  lines.add({"  by bound", counts_text(s.bounds)});
  lines.add({"  by status", counts_text(s.statuses)});
  if (s.backends.size() > 1 || s.backends.contains("generic")) lines.add({"  by backend", counts_text(s.backends)});
  return "\nIteration records\n" + table.text() + "\n" + lines.text("") +
         "  near limit: ok, and within 10 % of the GPU's memory; GPU-bound: the GPU is busy for more than 90 % of the "
         "iteration\n";
}

std::string samples_text(const DataSummary& s) {
  Table lines({"  by grid", counts_text(s.grids)});
  lines.align_left(1);
  lines.add({"  by type", counts_text(s.dtypes)});
  lines.add({"  by status", counts_text(s.sample_statuses)});
  Table table({"op", "samples"});
  const auto ops = by_count(s.ops);
  int64_t others = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (i < kOpsShown) {
      table.add({ops[i].first, grouped(ops[i].second)});
    } else {
      others += ops[i].second;
    }
  }
  if (others > 0) table.add({fmt::format("{} further ops", ops.size() - kOpsShown), grouped(others)});
  return "\nOp samples\n" + lines.text("") + table.text();
}

std::string repeats_text(const Repeats& repeats) {
  if (repeats.count == 0) return "none";
  const bool more = repeats.count > static_cast<int64_t>(repeats.examples.size());
  return fmt::format("{} ({}{})", grouped(repeats.count), fmt::join(repeats.examples, ", "), more ? ", ..." : "");
}

std::string remarks_text(const DataSummary& s) {
  Table lines({"  same id as a record before", repeats_text(s.same_id)});
  lines.align_left(1);
  lines.add({"  same configuration, another id", repeats_text(s.same_configuration)});
  if (s.gpu_us > 0) {
    lines.add({"  kernels matched to ops by name", s.not_aligned == 0 ? "none" : grouped(s.not_aligned) + " records"});
    lines.add({"  kernel time without an op", fmt::format("{:.2f} %", 100 * s.unmatched_us / s.gpu_us)});
    lines.add({"  more than 5 % of it", repeats_text(s.mostly_unmatched)});
  }
  if (s.broken > 0) lines.add({"  broken records", grouped(s.broken)});
  if (s.torn > 0) lines.add({"  torn last lines", grouped(s.torn)});
  return "\nTo know\n" + lines.text("");
}

Json json_of(const Repeats& repeats) { return {{"count", repeats.count}, {"examples", repeats.examples}}; }

Json json_of(const FamilySummary& f) {
  Json json = {{"records", f.records},
               {"ok", f.ok},
               {"oom", f.oom},
               {"failed", f.failed},
               {"near_limit", f.near_limit},
               {"gpu_bound", f.gpu_bound},
               {"host_bound", f.host_bound}};
  if (!f.split.empty()) json["split"] = f.split;
  return json;
}

}  // namespace

std::string to_text(const DataSummary& s) {
  const int64_t runs = s.all().records;
  std::string out = fmt::format("{} iteration records of {} families and {} op samples in {} file{}\n", grouped(runs),
                                s.families.size(), grouped(s.samples), grouped(s.files), s.files == 1 ? "" : "s");
  if (runs > 0) out += runs_text(s);
  if (s.samples > 0) out += samples_text(s);
  return out + remarks_text(s);
}

std::string to_json(const DataSummary& s) {
  Json families = Json::object();
  for (const auto& [family, count] : s.families) families[family] = json_of(count);
  const Json json = {
      {"files", s.files},
      {"runs", json_of(s.all())},
      {"families", families},
      {"splits", s.splits},
      {"precisions", s.precisions},
      {"optimizers", s.optimizers},
      {"layouts", s.layouts},
      {"bounds", s.bounds},
      {"statuses", s.statuses},
      {"backends", s.backends},
      {"samples", s.samples},
      {"grids", s.grids},
      {"ops", s.ops},
      {"dtypes", s.dtypes},
      {"sample_statuses", s.sample_statuses},
      {"same_id", json_of(s.same_id)},
      {"same_configuration", json_of(s.same_configuration)},
      {"not_aligned", s.not_aligned},
      {"unmatched_share", s.gpu_us > 0 ? s.unmatched_us / s.gpu_us : 0},
      {"mostly_unmatched", json_of(s.mostly_unmatched)},
      {"broken", s.broken},
      {"torn", s.torn},
  };
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace forerun
