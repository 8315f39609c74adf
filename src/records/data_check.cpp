#include "records/data_check.h"

#include <fmt/format.h>

#include <unordered_set>

#include "records/data_files.h"

namespace forerun {
namespace {

class Checker {
 public:
  Checker(DataCheck& check, const std::function<void(const DataProblem&)>& report) : check_(check), report_(report) {}

  void take(const RunRecord& record, const DataPlace& place) {
    if (std::string wrong = implausible(record); !wrong.empty()) {
      problem({DataProblem::Kind::broken, place.file, place.line, record.run.id, std::move(wrong)});
      return;
    }
    ++check_.runs;
    know("run", record.run.id, place);
  }

  void take(const OpSample& sample, const DataPlace& place) {
    ++check_.samples;
    if (!sample.id.empty()) know("op", sample.id, place);
  }

  void problem(const DataProblem& problem) {
    switch (problem.kind) {
      case DataProblem::Kind::broken: ++check_.broken; break;
      case DataProblem::Kind::torn: ++check_.torn; break;
      case DataProblem::Kind::warning: ++check_.warnings; break;
    }
    report_(problem);
  }

 private:
  void know(const char* kind, const std::string& id, const DataPlace& place) {
    if (ids_.insert(fmt::format("{} {}", kind, id)).second) return;
    problem({DataProblem::Kind::warning, place.file, place.line, id, "a record before it has the same id"});
  }

  DataCheck& check_;
  const std::function<void(const DataProblem&)>& report_;
  std::unordered_set<std::string> ids_;
};

std::string wrong_memory(const Measurement& m) {
  const auto exceeds = [](const char* small, Bytes a, const char* large, Bytes b) {
    return a > b ? fmt::format("mem.{} ({}) is more than {} ({})", small, a.value, large, b.value) : "";
  };
  if (m.peak_allocated.value <= 0) return "mem.peak_allocated is 0";
  if (auto wrong = exceeds("peak_allocated", m.peak_allocated, "peak_reserved", m.peak_reserved); !wrong.empty()) {
    return wrong;
  }
  if (m.device_total.value > 0) {
    if (auto wrong = exceeds("device_used", m.device_used, "device_total", m.device_total); !wrong.empty())
      return wrong;
    return exceeds("peak_reserved", m.peak_reserved, "device_total", m.device_total);
  }
  return "";
}

}  // namespace

std::string implausible(const RunRecord& record) {
  if (record.allocator) {
    const bool earlier = record.measured && record.measured->base_allocated.value > 0;
    if (const Status status = check(*record.allocator, earlier); !status.ok()) return status.error().what;
  }
  if (!record.measured || record.measured->status != RunStatus::ok) return "";
  const Measurement& m = *record.measured;
  if (m.pipelined_median_ms <= 0) return fmt::format("time_ms.pipelined_median is {}", m.pipelined_median_ms);
  if (m.synced_median_ms < 0) return fmt::format("time_ms.synced_median is {}", m.synced_median_ms);
  if (m.gpu_busy_us <= 0) return "its kernels take no time";
  for (size_t phase = 0; phase < m.host_us.size(); ++phase) {
    if (m.host_us[phase] < 0) {
      return fmt::format("profile.phases: {} ends before it begins", name_of(static_cast<Phase>(phase)));
    }
  }
  return wrong_memory(m);
}

Result<DataCheck> check_data(const std::vector<std::string>& files,
                             const std::function<void(const DataProblem&)>& problem,
                             const std::function<void(const Error&)>& unreadable, const WorkControl& control) {
  Work work(control, "records");
  DataCheck check;
  Checker checker(check, problem);
  const DataHandlers handlers = {
      .run = [&](const RunRecord& record, const DataPlace& place) { checker.take(record, place); },
      .sample = [&](const OpSample& sample, const DataPlace& place) { checker.take(sample, place); },
      .problem = [&](const DataProblem& found) { checker.problem(found); }};
  for (const std::string& file : files) {
    ++check.files;
    const int64_t before = check.runs + check.samples + check.broken;
    if (const Status status = scan_file(file, Fields::everything, handlers, work); !status.ok()) {
      if (status.error().is_unfinished()) return status.error();
      ++check.unreadable;
      unreadable(status.error());
    } else if (check.runs + check.samples + check.broken == before) {
      ++check.empty;
      unreadable(nothing_in({file}, "records"));
    }
  }
  return check;
}

}  // namespace forerun
