#include "predict/kept_runs.h"

#include "derive/dispatch.h"
#include "derive/precision_support.h"
#include "predict/model_name.h"

namespace forerun {
namespace {

bool alike(const ModelRequest& a, const ModelRequest& b) {
  return a.model == b.model && a.batch == b.batch && a.default_optimizer == b.default_optimizer &&
         a.settings == b.settings && a.setup == b.setup;
}

bool may_be_kept(const ModelRequest& request) {
  return !request.file && request.setup.compile == CompileMode::none && !names_file(request.model);
}

}  // namespace

RunSource built_anew(RunBuilder* build) {
  return [build](const ModelRequest& request, const Device& device) -> Result<SharedTrainingRun> {
    Result<TrainingRun> run = build(request, device);
    if (!run) return run.error();
    return std::make_shared<const TrainingRun>(std::move(*run));
  };
}

SharedTrainingRun KeptRuns::find(const ModelRequest& request, bool cudnn_attention) {
  const std::lock_guard lock(busy_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->cudnn_attention != cudnn_attention || !alike(entry->request, request)) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return entries_.front().run;
  }
  return nullptr;
}

void KeptRuns::keep(Entry entry) {
  const size_t ops = entry.run->graph.op_count();
  if (ops > most_ops_) return;
  const std::lock_guard lock(busy_);
  ops_ += ops;
  entries_.push_front(std::move(entry));
  while (ops_ > most_ops_) {
    ops_ -= entries_.back().run->graph.op_count();
    entries_.pop_back();
  }
}

Result<SharedTrainingRun> KeptRuns::get(const ModelRequest& request, const Device& device) {
  if (!may_be_kept(request)) return built_anew(build_)(request, device);
  const bool cudnn_attention = derive::target_of(device).cudnn_attention;
  if (SharedTrainingRun kept = find(request, cudnn_attention)) {
    if (const Status status = derive::check_precision(request.setup.precision, device); !status.ok()) {
      return status.error();
    }
    return kept;
  }
  Result<TrainingRun> built = build_(request, device);
  if (!built) return built.error();
  built->environment.gpu.clear();
  auto run = std::make_shared<const TrainingRun>(std::move(*built));
  keep({request, cudnn_attention, run});
  return SharedTrainingRun(std::move(run));
}

RunSource KeptRuns::source() {
  return [this](const ModelRequest& request, const Device& device) { return get(request, device); };
}

size_t KeptRuns::ops() {
  const std::lock_guard lock(busy_);
  return ops_;
}

}  // namespace forerun
