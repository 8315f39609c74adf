#include "records/data_summary.h"

#include <unordered_set>

#include "records/data_configuration.h"
#include "records/data_split.h"
#include "records/measured_bound.h"

namespace forerun {
namespace {

constexpr size_t kExamples = 3;
constexpr double kMuchUnmatched = 0.05;

void add(Repeats& repeats, const std::string& id) {
  ++repeats.count;
  if (repeats.examples.size() < kExamples) repeats.examples.push_back(id);
}

class Summarizer {
 public:
  explicit Summarizer(DataSplit split) : split_(std::move(split)) {}

  void take(const RunRecord& record) {
    const TrainingRun& run = record.run;
    FamilySummary& family = summary_.families[run.family];
    family.split = split_.part_of_family(run.family);
    ++family.records;
    const std::string part = split_.part_of(run);
    ++summary_.splits[part.empty() ? "in none" : part];
    ++summary_.precisions[std::string(name_of(run.setup.precision))];
    ++summary_.optimizers[std::string(name_of(run.setup.optimizer.impl))];
    ++summary_.layouts[run.setup.channels_last ? "channels_last" : "contiguous"];
    ++summary_.backends[std::string(name_of(run.backend))];
    ++summary_.statuses[std::string(status_text(record))];
    count_bound(measured_bound(record), family);
    if (near_memory_limit(record)) ++family.near_limit;
    if (record.measured) take_measured(*record.measured, run.id, family);
    if (!ids_.insert("run " + run.id).second) {
      add(summary_.same_id, run.id);
    } else if (std::string key = configuration_of(run);
               !key.empty() && !configurations_.insert(std::move(key)).second) {
      add(summary_.same_configuration, run.id);
    }
  }

  void take(const OpSample& sample) {
    ++summary_.samples;
    ++summary_.grids[sample.grid.empty() ? "none" : sample.grid];
    ++summary_.ops[sample.op];
    const auto dtype = sample.dtype();
    ++summary_.dtypes[std::string(dtype ? name_of(*dtype) : "none")];
    ++summary_.sample_statuses[std::string(name_of(sample.status))];
    if (!sample.id.empty() && !ids_.insert("op " + sample.id).second) add(summary_.same_id, sample.id);
  }

  void take(const DataProblem& problem) {
    ++(problem.kind == DataProblem::Kind::torn ? summary_.torn : summary_.broken);
  }

  DataSummary finish(size_t files) {
    summary_.files = static_cast<int64_t>(files);
    return std::move(summary_);
  }

 private:
  void count_bound(MeasuredBound bound, FamilySummary& family) {
    switch (bound) {
      case MeasuredBound::gpu: ++family.gpu_bound; break;
      case MeasuredBound::host: ++family.host_bound; break;
      case MeasuredBound::unknown: break;
    }
    const std::string_view name = bound == MeasuredBound::gpu    ? "GPU"
                                  : bound == MeasuredBound::host ? "host"
                                                                 : "not measured";
    ++summary_.bounds[std::string(name)];
  }

  void take_measured(const Measurement& m, const std::string& id, FamilySummary& family) {
    switch (m.status) {
      case RunStatus::ok: ++family.ok; break;
      case RunStatus::oom: ++family.oom; break;
      case RunStatus::failed: ++family.failed; break;
    }
    if (m.status != RunStatus::ok) return;
    if (!m.aligned) ++summary_.not_aligned;
    summary_.gpu_us += m.gpu_busy_us;
    summary_.unmatched_us += m.unmatched_us;
    if (m.unmatched_us > kMuchUnmatched * m.gpu_busy_us) add(summary_.mostly_unmatched, id);
  }

  DataSplit split_;
  DataSummary summary_;
  std::unordered_set<std::string> ids_, configurations_;
};

}  // namespace

Result<DataSummary> summarize_data(const std::vector<std::string>& files,
                                   const std::function<void(const DataProblem&)>& problem, const WorkControl& control) {
  auto split = DataSplit::beside(files);
  if (!split) return split.error();
  Summarizer summarizer(std::move(*split));
  const Status status =
      scan_files(files, Fields::description,
                 {.run = [&](const RunRecord& record, const DataPlace& /*place*/) { summarizer.take(record); },
                  .sample = [&](const OpSample& sample, const DataPlace& /*place*/) { summarizer.take(sample); },
                  .problem =
                      [&](const DataProblem& found) {
                        summarizer.take(found);
                        if (problem) problem(found);
                      }},
                 control);
  if (!status.ok()) return status.error();
  return summarizer.finish(files.size());
}

FamilySummary& FamilySummary::operator+=(const FamilySummary& other) {
  records += other.records;
  ok += other.ok;
  oom += other.oom;
  failed += other.failed;
  near_limit += other.near_limit;
  gpu_bound += other.gpu_bound;
  host_bound += other.host_bound;
  return *this;
}

FamilySummary DataSummary::all() const {
  FamilySummary sum;
  for (const auto& [family, count] : families) sum += count;
  return sum;
}

}  // namespace forerun
