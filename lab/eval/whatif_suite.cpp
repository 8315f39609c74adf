#include "lab/eval/whatif_suite.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "api/whatif.h"
#include "base/data_dir.h"
#include "ingest/capture/run_record.h"
#include "ingest/kineto/kineto_reader.h"
#include "records/data_split.h"
#include "records/measured_bound.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

struct MeasuredVariant {
  std::string family;
  std::vector<std::string> applications;  // empty: the base
  bool other_batch = false;
  bool gpu_bound = false;
  bool trained_on = false;
  StepTimes times;
  std::pair<size_t, OptimizerImpl> host_work;  // runs of a family that have it in common ask the same of the host
};

// What has to be applied to the base to get the run; nothing for the base itself.
std::vector<std::string> applications_of(const TrainingRun& run, int64_t base_batch) {
  std::vector<std::string> names;
  if (run.setup.precision == Precision::amp_bf16) names.emplace_back("amp");
  if (run.setup.precision == Precision::tf32) names.emplace_back("tf32");
  if (run.setup.channels_last) names.emplace_back("channels_last");
  if (run.setup.optimizer.impl == OptimizerImpl::fused) names.emplace_back("fused_adam");
  if (run.setup.optimizer.impl == OptimizerImpl::foreach) names.emplace_back("foreach_adam");
  if (run.input.batch != base_batch) {
    const double factor = static_cast<double>(run.input.batch) / static_cast<double>(base_batch);
    std::string text = std::to_string(factor);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with(".")) text.pop_back();
    names.push_back("batch:factor=" + text);
  }
  return names;
}

Result<std::vector<MeasuredVariant>> measured_variants(const std::string& file) {
  const auto split = DataSplit::beside({file});
  if (!split) return split.error();
  std::vector<MeasuredVariant> variants;
  std::map<std::string, int64_t> batches;  // of the base, which comes first
  auto reader = RunRecordReader::open(file, Fields::inputs_and_measurements);
  if (!reader) return reader.error();
  for (;;) {
    auto record = reader->next();
    if (!record) return record.error();
    if (!record->has_value()) return variants;
    const RunRecord& r = **record;
    if (!r.measured || r.measured->out_of_memory) continue;
    const int64_t base = batches.emplace(r.run.family, r.run.input.batch).first->second;
    variants.push_back({.family = r.run.family,
                        .applications = applications_of(r.run, base),
                        .other_batch = r.run.input.batch != base,
                        .gpu_bound = measured_bound(r) == MeasuredBound::gpu,
                        .trained_on = split->part_of(r.run) == DataSplit::kTrain,
                        .times = {r.measured->pipelined_median_ms, r.measured->gpu_busy_us * 1e-3},
                        .host_work = {r.run.graph.op_count(), r.run.setup.optimizer.impl}});
  }
}

// Those that change precision, and maybe the optimizer; "amp" by Daydream's rule. The bases stay.
std::vector<MeasuredVariant> amp_by_daydream(std::vector<MeasuredVariant> variants) {
  std::erase_if(variants, [](const MeasuredVariant& variant) {
    const auto& names = variant.applications;
    const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    return !names.empty() && (!has("amp") || has("channels_last"));
  });
  for (MeasuredVariant& variant : variants) {
    std::replace(variant.applications.begin(), variant.applications.end(), std::string("amp"),
                 std::string("amp:rule=daydream"));
  }
  return variants;
}

Result<fs::path> suite_folder(const std::string& given) {
  if (!given.empty()) return fs::path(given);
  const auto data = data_dir();
  if (!data) return data.error();
  return *data / "h200";
}

Result<fs::path> variants_file(const fs::path& folder) {
  for (const char* name : {"whatif.jsonl.gz", "whatif.jsonl.zst", "first-whatif.jsonl.zst"}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  return Error{"holds no measured variants", folder.string(), "name the folder of whatif.jsonl.gz with --data"};
}

std::string joined(const std::vector<std::string>& applications) {
  std::string names;
  for (const std::string& name : applications) names += (names.empty() ? "" : " + ") + name;
  return names.empty() ? "base" : names;
}

// The base's trace of one family after the other.
class BaseTraces {
 public:
  explicit BaseTraces(fs::path folder) : folder_(std::move(folder)) {}

  const Result<Trace>& of(const std::string& family) {
    if (!trace_ || family != family_) {
      fs::path traced = folder_ / "whatif_traces" / (family + ".base.trace.json.zst");
      if (!fs::exists(traced)) traced.replace_extension(".gz");
      trace_.emplace(read_kineto(traced.string()));
      family_ = family;
    }
    return *trace_;
  }

 private:
  fs::path folder_;
  std::string family_;
  std::optional<Result<Trace>> trace_;
};

Result<WhatIfCase> judged(const MeasuredVariant& variant, const MeasuredVariant& base, const Trace& trace,
                          const CostModels& cost_models) {
  const auto applications = whatif::parse_applications(variant.applications);
  if (!applications) return applications.error();
  WhatIfQuestion question;
  question.applications = *applications;
  const auto answer = what_if(trace, question, cost_models);
  if (!answer) return answer.error();
  WhatIfCase c{.model = variant.family, .variant = joined(variant.applications)};
  if (variant.applications.empty()) c.kind = WhatIfKind::base;
  if (variant.other_batch) c.kind = WhatIfKind::batch;
  c.trained_on = variant.trained_on;
  c.gpu_bound = variant.gpu_bound && base.gpu_bound;
  c.measured_base = base.times;
  c.measured = variant.times;
  c.predicted_base = {answer->baseline_ms, answer->baseline_gpu_ms};
  c.predicted = {answer->predicted_ms, answer->predicted_gpu_ms};
  c.low_ms = answer->low_ms;
  c.high_ms = answer->high_ms;
  return c;
}

// How far apart the host-bound runs of a model lie that ask the same of the host.
std::vector<HostScatter> host_scatter(const std::vector<MeasuredVariant>& variants) {
  std::map<std::pair<std::string, std::pair<size_t, OptimizerImpl>>, HostScatter> alike;
  for (const MeasuredVariant& variant : variants) {
    if (variant.gpu_bound) continue;
    HostScatter& of = alike[{variant.family, variant.host_work}];
    const double ms = variant.times.ms;
    of = {variant.family, of.runs + 1, of.runs == 0 ? ms : std::min(of.shortest_ms, ms), std::max(of.longest_ms, ms)};
  }
  std::vector<HostScatter> found;
  for (const auto& [key, of] : alike) {
    if (of.runs > 1) found.push_back(of);
  }
  return found;
}

}  // namespace

Result<WhatIfAccuracy> evaluate_whatif(const WhatIfSuiteOptions& options, const WorkControl& control) {
  const auto folder = suite_folder(options.folder);
  if (!folder) return folder.error();
  const auto file = variants_file(*folder);
  if (!file) return file.error();
  auto variants = measured_variants(file->string());
  if (!variants) return variants.error();
  if (options.amp_by_daydream) *variants = amp_by_daydream(std::move(*variants));
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  WhatIfAccuracy accuracy;
  accuracy.data = folder->lexically_normal().string();
  accuracy.scatter = host_scatter(*variants);
  BaseTraces traces(*folder);
  const MeasuredVariant* base = nullptr;
  Work work(control, "variants", static_cast<int64_t>(variants->size()));
  for (const MeasuredVariant& variant : *variants) {
    if (const Status status = work.advance(); !status.ok()) return status.error();
    if (variant.applications.empty()) base = &variant;
    const auto not_judged = [&](const std::string& why) {
      accuracy.problems.push_back(variant.family + ", " + joined(variant.applications) + ": " + why);
    };
    if (base == nullptr || base->family != variant.family) {
      not_judged("its base was not measured before it");
      continue;
    }
    const Result<Trace>& trace = traces.of(variant.family);
    auto c = trace ? judged(variant, *base, *trace, *cost_models) : trace.error();
    if (!c) {
      not_judged(c.error().message());
      continue;
    }
    accuracy.cases.push_back(std::move(*c));
  }
  if (accuracy.cases.empty()) return Error{"no variant could be judged", accuracy.data, "see the traces' own errors"};
  return accuracy;
}

}  // namespace forerun
