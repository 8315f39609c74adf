#include "api/cross_validation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/data_files.h"
#include "api/predict.h"
#include "api/train_host.h"
#include "api/train_hybrid.h"

namespace forerun {
namespace {

// Knowledge fitted to all training families but these.
Status fit_without(const CrossValidation& request, const std::set<std::string>& without, Knowledge& knowledge) {
  knowledge.corrector.reset();
  HybridRequest trees{.files = request.files, .without = without, .problem = request.problem};
  auto ops = hybrid_ops(trees, knowledge);
  if (!ops) return ops.error();
  auto corrector = hybrid::train(std::move(*ops), request.growth, [](std::string_view, size_t, size_t) {});
  if (!corrector) return corrector.error();
  const Result<Device> gpu = knowledge.devices.find(kDefaultGpu);
  if (!gpu) return gpu.error();
  corrector->gpu = gpu->name;
  const auto families = training_families(request.files, without);
  if (!families) return families.error();
  const auto samples = load_host_samples(request.files, *families, request.problem);
  if (!samples) return samples.error();
  auto host = fit_host(*samples);
  if (!host) return host.error();
  knowledge.corrector = std::move(*corrector);
  knowledge.host = host->constants;
  return {};
}

Status predict_left_out(const CrossValidation& request, const std::set<std::string>& families,
                        const Knowledge& knowledge, std::vector<LeftOutRun>& runs) {
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    if (!families.contains(record.run.family) || !record.has_graph || !record.measured) return;
    const Measurement& m = *record.measured;
    if (m.status != RunStatus::ok || m.pipelined_median_ms <= 0 || m.gpu_busy_us <= 0) return;
    const Result<Device> device = knowledge.devices.find(record.run.environment.gpu);
    if (!device) return;
    const auto run = for_device(record.run, *device);
    if (!run) return;
    const Prediction answer = predict(*run, *device, knowledge);
    runs.push_back({.id = record.run.id,
                    .family = record.run.family,
                    .iteration_ms = milliseconds(answer.times.iteration),
                    .gpu_busy_ms = milliseconds(answer.times.gpu_busy),
                    .host_bound = answer.times.bound == Verdict::host,
                    .measured_ms = m.pipelined_median_ms,
                    .measured_gpu_ms = m.gpu_busy_us / 1e3});
  };
  return scan_files(request.files, Fields::inputs_and_measurements,
                    {.run = take, .sample = {}, .problem = [](const DataProblem&) {}});
}

}  // namespace

std::vector<std::vector<std::string>> fold_families(const std::vector<std::string>& families, int folds) {
  const size_t count = folds <= 0 ? families.size() : std::min(families.size(), static_cast<size_t>(folds));
  std::vector<std::vector<std::string>> groups(count);
  for (size_t i = 0; i < families.size(); ++i) groups[i % count].push_back(families[i]);
  return groups;
}

Result<std::vector<LeftOutRun>> cross_validate(const CrossValidation& request) {
  Result<Knowledge> knowledge = load_knowledge({}, Trees::without);
  if (!knowledge) return knowledge.error();
  const auto families = training_families(request.files, {});
  if (!families) return families.error();
  const auto groups = fold_families({families->begin(), families->end()}, request.folds);
  if (groups.size() < 2) {
    return Error{"there are not two families to leave out in turn", "", "give records of several families"};
  }
  std::vector<LeftOutRun> runs;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (request.progress) request.progress(fmt::format("without {}", fmt::join(groups[i], ", ")), i, groups.size());
    const std::set<std::string> group(groups[i].begin(), groups[i].end());
    if (const Status fitted = fit_without(request, group, *knowledge); !fitted.ok()) return fitted.error();
    const Status predicted = predict_left_out(request, group, *knowledge, runs);
    if (!predicted.ok()) return predicted.error();
  }
  return runs;
}

}  // namespace forerun
