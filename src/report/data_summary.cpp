#include "report/data_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr size_t kOpsShown = 40;

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

void write_json(JsonWriter& json, const Repeats& repeats) {
  json.begin_object().field("count", repeats.count).field("examples", repeats.examples).end_object();
}

void write_json(JsonWriter& json, const FamilySummary& f) {
  json.begin_object()
      .field("records", f.records)
      .field("ok", f.ok)
      .field("oom", f.oom)
      .field("failed", f.failed)
      .field("near_limit", f.near_limit)
      .field("gpu_bound", f.gpu_bound)
      .field("host_bound", f.host_bound);
  if (!f.split.empty()) json.field("split", f.split);
  json.end_object();
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
  JsonWriter json;
  json.begin_object().field("schema", "forerun.data.summary/1").field("files", s.files);
  write_json(json.key("runs"), s.all());
  json.key("families").begin_object();
  for (const auto& [family, count] : s.families) write_json(json.key(family), count);
  json.end_object()
      .field("splits", s.splits)
      .field("precisions", s.precisions)
      .field("optimizers", s.optimizers)
      .field("layouts", s.layouts)
      .field("bounds", s.bounds)
      .field("statuses", s.statuses)
      .field("backends", s.backends)
      .field("samples", s.samples)
      .field("grids", s.grids)
      .field("ops", s.ops)
      .field("dtypes", s.dtypes)
      .field("sample_statuses", s.sample_statuses);
  write_json(json.key("same_id"), s.same_id);
  write_json(json.key("same_configuration"), s.same_configuration);
  json.field("not_aligned", s.not_aligned).field("unmatched_share", s.gpu_us > 0 ? s.unmatched_us / s.gpu_us : 0.0);
  write_json(json.key("mostly_unmatched"), s.mostly_unmatched);
  return json.field("broken", s.broken).field("torn", s.torn).end_object().take();
}

}  // namespace forerun
