#include "api/whatif.h"

#include <algorithm>
#include <cmath>

#include "api/predict.h"
#include "whatif/optimizations.h"

namespace forerun {
namespace {

using whatif::OpTimer;
using whatif::Scene;

Result<OpTimer> timer_for(const Trace& trace, const WhatIfQuestion& question, const Knowledge& knowledge) {
  std::string gpu = question.gpu.empty() ? trace.gpu : question.gpu;
  if (gpu.empty()) gpu = std::string(kDefaultGpu);
  const auto device = knowledge.devices.find(gpu);
  if (!device) return device.error();
  const hybrid::Corrector* corrector = knowledge.corrector ? &*knowledge.corrector : nullptr;
  std::optional<hybrid::OtherGpu> other;
  if (corrector != nullptr) {
    const auto measured = knowledge.devices.find(corrector->gpu);
    if (measured && measured->name != device->name) other = hybrid::OtherGpu{*measured, knowledge.scale};
  }
  return OpTimer(*device, knowledge.analytic, corrector, std::move(other));
}

// How far off a prediction may be: a share of the change that kernel-time ratios make, and of the whole what a second
// measurement differs by (0.2 % where the GPU decides, 8 % where the host does).
void set_range(WhatIfAnswer& answer) {
  const double change = std::abs(answer.predicted_ms - answer.baseline_ms);
  const bool host_bound = answer.predicted_gpu_ms < 0.9 * answer.predicted_ms;
  const double margin = 0.25 * change + (host_bound ? 0.10 : 0.02) * answer.predicted_ms;
  answer.low_ms = std::max(0.0, answer.predicted_ms - margin);
  answer.high_ms = answer.predicted_ms + margin;
}

Result<Scene> scene_of(const Trace& trace, const WhatIfQuestion& question, const OpTimer& timer) {
  auto scene = Scene::of(trace, &timer);
  if (!scene || !question.unprofiled) return scene;
  const Status status = scene->remove_profiler();
  if (!status.ok()) return status.error();
  scene->assume("without the profiler the host is 1.35 times as fast (1.16 to 1.63 in measured runs)");
  return scene;
}

Result<WhatIfAnswer> answer_for(Scene scene, const Trace& trace, const WhatIfQuestion& question) {
  WhatIfAnswer answer;
  answer.file = trace.file;
  answer.applied = question.applications;
  answer.unprofiled = question.unprofiled;
  const auto before = scene.iteration_time();
  if (!before) return before.error();
  answer.baseline_ms = milliseconds(*before);
  answer.baseline_gpu_ms = milliseconds(scene.device_busy());
  for (const std::string& text : question.applications) {
    const auto application = whatif::parse_application(text);
    if (!application) return application.error();
    const Status status = application->optimization->apply(scene, application->parameters);
    if (!status.ok()) return status.error();
  }
  const auto after = scene.iteration_time();
  if (!after) return after.error();
  answer.predicted_ms = milliseconds(*after);
  answer.predicted_gpu_ms = milliseconds(scene.device_busy());
  answer.assumptions = scene.assumptions;
  set_range(answer);
  return answer;
}

}  // namespace

Result<WhatIfAnswer> what_if(const Trace& trace, const WhatIfQuestion& question, const Knowledge& knowledge) {
  for (const std::string& text : question.applications) {
    const auto application = whatif::parse_application(text);
    if (!application) return application.error();
  }
  const auto timer = timer_for(trace, question, knowledge);
  if (!timer) return timer.error();
  auto scene = scene_of(trace, question, *timer);
  if (!scene) return scene.error();
  return answer_for(std::move(*scene), trace, question);
}

Result<std::vector<WhatIfAnswer>> rank_what_ifs(const Trace& trace, const WhatIfQuestion& question,
                                                const Knowledge& knowledge) {
  const auto timer = timer_for(trace, question, knowledge);
  if (!timer) return timer.error();
  const auto scene = scene_of(trace, question, *timer);
  if (!scene) return scene.error();
  std::vector<WhatIfAnswer> ranking;
  for (const whatif::Optimization& optimization : whatif::optimizations()) {
    if (!optimization.ranked) continue;
    WhatIfQuestion alone = question;
    alone.applications = {std::string(optimization.name)};
    auto answer = answer_for(*scene, trace, alone);
    if (answer) ranking.push_back(std::move(*answer));
  }
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const WhatIfAnswer& a, const WhatIfAnswer& b) { return a.gain() > b.gain(); });
  return ranking;
}

}  // namespace forerun
