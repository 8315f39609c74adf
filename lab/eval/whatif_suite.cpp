#include "lab/eval/whatif_suite.h"

#include <filesystem>
#include <map>
#include <vector>

#include "api/whatif.h"
#include "base/data_dir.h"
#include "ingest/capture/run_record.h"
#include "ingest/kineto/kineto_reader.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

struct MeasuredVariant {
  std::string family;
  std::vector<std::string> applications;
  double ms = 0, gpu_ms = 0;
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
    variants.push_back(
        {r.run.family, applications_of(r.run, base), r.measured->pipelined_median_ms, r.measured->gpu_busy_us * 1e-3});
  }
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

}  // namespace

Result<WhatIfAccuracy> evaluate_whatif(const WhatIfSuiteOptions& options, const WorkControl& control) {
  const auto folder = suite_folder(options.folder);
  if (!folder) return folder.error();
  const auto file = variants_file(*folder);
  if (!file) return file.error();
  const auto variants = measured_variants(file->string());
  if (!variants) return variants.error();
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  WhatIfAccuracy accuracy;
  accuracy.data = folder->lexically_normal().string();
  std::map<std::string, double> bases;
  std::map<std::string, Result<Trace>> traces;
  Work work(control, "variants", static_cast<int64_t>(variants->size()));
  for (const MeasuredVariant& variant : *variants) {
    if (const Status status = work.advance(); !status.ok()) return status.error();
    if (variant.applications.empty()) {
      bases[variant.family] = variant.ms;
      continue;
    }
    const auto known = traces.find(variant.family);
    if (known == traces.end()) {
      traces.clear();
      fs::path traced = *folder / "whatif_traces" / (variant.family + ".base.trace.json.zst");
      if (!fs::exists(traced)) traced.replace_extension(".gz");
      traces.emplace(variant.family, read_kineto(traced.string()));
      if (!traces.at(variant.family)) accuracy.problems.push_back(traces.at(variant.family).error().message());
    }
    const Result<Trace>& trace = traces.at(variant.family);
    if (!trace) continue;
    const auto applications = whatif::parse_applications(variant.applications);
    if (!applications) return applications.error();
    WhatIfQuestion question;
    question.applications = *applications;
    const auto answer = what_if(*trace, question, *cost_models);
    std::string names;
    for (const std::string& name : variant.applications) names += (names.empty() ? "" : " + ") + name;
    if (!answer) {
      accuracy.problems.push_back(variant.family + ", " + names + ": " + answer.error().message());
      continue;
    }
    accuracy.cases.push_back({variant.family, names, bases[variant.family], variant.ms, answer->baseline_ms,
                              answer->predicted_ms, answer->low_ms, answer->high_ms, variant.gpu_ms,
                              answer->predicted_gpu_ms});
  }
  if (accuracy.cases.empty()) return Error{"no variant could be judged", accuracy.data, "see the traces' own errors"};
  return accuracy;
}

}  // namespace forerun
