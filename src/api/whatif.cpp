#include "api/whatif.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "derive/precision_support.h"
#include "whatif/host_calibration.h"
#include "whatif/optimizations.h"

namespace forerun {
namespace {

using whatif::OpTimer;
using whatif::Scene;

Result<OpTimer> timer_of(const std::string& gpu, const Knowledge& knowledge) {
  const auto device = knowledge.devices.find(gpu.empty() ? std::string(kDefaultGpu) : gpu);
  if (!device) return device.error();
  const hybrid::Corrector* corrector = knowledge.corrector ? &*knowledge.corrector : nullptr;
  std::optional<hybrid::OtherGpu> other;
  if (corrector != nullptr) {
    const auto measured = knowledge.devices.find(corrector->gpu);
    if (measured && measured->name != device->name) other = hybrid::OtherGpu{*measured, knowledge.scale};
  }
  OpTimer timer(*device, knowledge.analytic, corrector, std::move(other));
  timer.set_host(knowledge.host);
  timer.set_lookup([&knowledge](const std::string& name) { return timer_of(name, knowledge); });
  return timer;
}

// The catalogue's GPU for one that a trace names: "Tesla V100-DGXS-32GB" is some V100. Nothing where none is like it.
std::optional<Device> device_like(const std::string& name, const DeviceCatalogue& devices) {
  if (auto found = devices.find(name)) return std::move(*found);
  std::string word;
  for (size_t i = 0; i <= name.size(); ++i) {
    const bool part = i < name.size() && std::isalnum(static_cast<unsigned char>(name[i])) != 0;
    if (part) {
      word += name[i];
      continue;
    }
    const bool model = word.size() >= 2 && std::isalpha(static_cast<unsigned char>(word[0])) != 0 &&
                       std::isdigit(static_cast<unsigned char>(word.back())) != 0;
    for (const Device& device : devices.devices()) {
      if (model && device.name.find(word) != std::string::npos) return device;
    }
    word.clear();
  }
  return std::nullopt;
}

using TimerPointer = std::unique_ptr<const OpTimer>;

// Null where the trace's GPU is not known: what needs no cost model can be asked all the same.
Result<TimerPointer> timer_for(const Trace& trace, const WhatIfQuestion& question, const Knowledge& knowledge) {
  std::string name = question.gpu;
  if (name.empty() && !trace.gpu.empty()) {
    const auto device = device_like(trace.gpu, knowledge.devices);
    if (!device) return TimerPointer();
    name = device->name;
  }
  auto timer = timer_of(name, knowledge);
  if (!timer) return timer.error();
  return std::make_unique<const OpTimer>(std::move(*timer));
}

Result<Scene> scene_of(const Trace& trace, const WhatIfQuestion& question, const OpTimer* timer) {
  auto scene = Scene::of(trace, timer);
  if (!scene) return scene;
  if (timer == nullptr) scene->assume("the GPU " + trace.gpu + " is not in the catalogue: no cost model");
  if (timer != nullptr && !trace.gpu.empty() && trace.gpu != timer->device().name) {
    scene->assume("cost model of a " + timer->device().name + " for the trace's " + trace.gpu);
  }
  if (!question.unprofiled) return scene;
  const Status status = whatif::take_out_profiler(*scene);
  if (!status.ok()) return status.error();
  return scene;
}

// The forward pass of a zoo model or ONNX file, and the same with another batch.
Result<whatif::TracedModel> model_of(const ModelRequest& request) {
  const auto base = forward_model(request);
  if (!base) return base.error();
  whatif::TracedModel model;
  model.name = request.model;
  model.input = base->input;
  model.setup = chosen_setup(request, base->input.kind);
  for (const Op& op : base->forward.ops()) {
    const bool added = model.modules.try_emplace(base->forward.module(op), model.calls).second;
    model.calls += added ? 1 : 0;
  }
  model.forward = [request, batch = base->input.batch](double factor) -> Result<Graph> {
    ModelRequest asked = request;
    const auto samples = static_cast<int64_t>(std::llround(static_cast<double>(batch) * factor));
    if (factor != 1) asked.batch = std::max<int64_t>(1, samples);
    auto made = forward_model(asked);
    if (!made) return made.error();
    return std::move(made->forward);
  };
  return model;
}

Result<Scene> scene_of(const ModelRequest& request, const OpTimer& timer) {
  auto model = model_of(request);
  if (!model) return model.error();
  auto scene = Scene::of_model(std::move(*model), &timer);
  if (scene) scene->assume("the iteration as `forerun predict` sees it: nothing of it was measured");
  const std::string caveat = derive::precision_caveat(request.setup.precision, timer.device());
  if (scene && !caveat.empty()) scene->assume(caveat);
  return scene;
}

// How much of the GPU's work is not as it was before: the larger, the more rests on the cost model.
double changed_share(const TaskGraph& before, const TaskGraph& after) {
  std::unordered_map<uint32_t, double> times;  // by event
  double all = 1, now = 0, changed = 0;
  for (uint32_t i = 0; i < before.size(); ++i) {
    if (!on_gpu(before.kind(TaskId(i)))) continue;
    const auto time = static_cast<double>(before.duration(TaskId(i)).value);
    times[before.event(TaskId(i))] += time;
    all += time;
  }
  for (uint32_t i = 0; i < after.size(); ++i) {
    if (!on_gpu(after.kind(TaskId(i)))) continue;
    const auto time = static_cast<double>(after.duration(TaskId(i)).value);
    times[after.event(TaskId(i))] -= time;
    now += time;
  }
  for (const auto& [event, difference] : times) changed += std::abs(difference);
  return std::min(1.0, changed / std::max(all, now));
}

// Between which multiples of the prediction eight of ten measurements lie, by what bounds the iteration. From pairs of runs
// of one model in data/h200 that differ in precision, optimizer or batch, the second predicted from the first: GPU-bound
// 0.89 to 1.10 on families that nothing was fitted to (less where less changes; 1.5 % is the noise of measuring), host-bound
// 0.75 to 1.20. What a model alone predicts has the range of `forerun predict`.
void set_range(const Scene& base, const Scene& scene, const Knowledge& knowledge, WhatIfAnswer& answer) {
  const bool measured_gpu =
      scene.timer() != nullptr && knowledge.corrector && knowledge.corrector->gpu == scene.timer()->device().name;
  SpreadRange gpu{0.89, 1.10}, host{0.75, 1.20};
  if (!scene.is_traced()) {
    gpu = spread_of(knowledge.spread, false, measured_gpu);
    host = spread_of(knowledge.spread, true, measured_gpu);
  } else {
    const bool swapped = scene.timer() != nullptr && scene.timer()->device().name != base.timer()->device().name;
    if (swapped) gpu = spread_of(knowledge.spread, false, false);
    const double share = changed_share(base.graph(), scene.graph());
    gpu = {1 - 0.015 - share * (1 - gpu.low), 1 + 0.015 + share * (gpu.high - 1)};
  }
  const double busy = milliseconds(scene.device_occupied()), issuing = milliseconds(scene.host_busy());
  const double most = std::max({busy, issuing, 1e-9});
  answer.low_ms = answer.predicted_ms * std::min(1.0, std::max(busy * gpu.low, issuing * host.low) / most);
  answer.high_ms = answer.predicted_ms * std::max(1.0, std::max(busy * gpu.high, issuing * host.high) / most);
  if (most > 0.85 * answer.predicted_ms) return;  // something else decides: communication, loading
  answer.low_ms = std::min(answer.low_ms, 0.85 * answer.predicted_ms);
  answer.high_ms = std::max(answer.high_ms, 1.2 * answer.predicted_ms);
}

Result<WhatIfAnswer> answer_for(const Scene& base, const WhatIfQuestion& question, const Knowledge& knowledge) {
  WhatIfAnswer answer;
  answer.file = base.trace().file;
  answer.applied = question.applications;
  answer.traced = base.is_traced();
  answer.unprofiled = question.unprofiled;
  const auto before = base.iteration_time();
  if (!before) return before.error();
  answer.baseline_ms = milliseconds(*before);
  answer.baseline_gpu_ms = milliseconds(base.device_busy());
  Scene scene = base;
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
  set_range(base, scene, knowledge, answer);
  return answer;
}

Status known_names(const WhatIfQuestion& question) {
  for (const std::string& text : question.applications) {
    const auto application = whatif::parse_application(text);
    if (!application) return application.error();
  }
  return {};
}

Result<std::vector<WhatIfAnswer>> ranking_of(const Scene& base, const WhatIfQuestion& question,
                                             const Knowledge& knowledge) {
  std::vector<WhatIfAnswer> ranking;
  for (const whatif::Optimization& optimization : whatif::optimizations()) {
    if (!optimization.ranked) continue;
    WhatIfQuestion alone = question;
    alone.applications.emplace_back(optimization.name);
    auto answer = answer_for(base, alone, knowledge);
    if (answer) ranking.push_back(std::move(*answer));
  }
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const WhatIfAnswer& a, const WhatIfAnswer& b) { return a.gain() > b.gain(); });
  return ranking;
}

}  // namespace

Result<BaseIteration> base_iteration(const Trace& trace, const WhatIfQuestion& question, const Knowledge& knowledge) {
  if (Status status = known_names(question); !status.ok()) return status.error();
  auto timer = timer_for(trace, question, knowledge);
  if (!timer) return timer.error();
  auto scene = scene_of(trace, question, timer->get());
  if (!scene) return scene.error();
  return BaseIteration{std::move(*timer), std::move(*scene)};
}

Result<BaseIteration> base_iteration(const ModelRequest& model, const WhatIfQuestion& question,
                                     const Knowledge& knowledge) {
  if (Status status = known_names(question); !status.ok()) return status.error();
  auto found = timer_of(question.gpu, knowledge);
  if (!found) return found.error();
  if (Status status = derive::check_precision(model.setup.precision, found->device()); !status.ok()) {
    return status.error();
  }
  auto timer = std::make_unique<const OpTimer>(std::move(*found));
  auto scene = scene_of(model, *timer);
  if (!scene) return scene.error();
  return BaseIteration{std::move(timer), std::move(*scene)};
}

Result<WhatIfAnswer> what_if(const Trace& trace, const WhatIfQuestion& question, const Knowledge& knowledge) {
  const auto base = base_iteration(trace, question, knowledge);
  if (!base) return base.error();
  return answer_for(base->scene, question, knowledge);
}

Result<WhatIfAnswer> what_if(const ModelRequest& model, const WhatIfQuestion& question, const Knowledge& knowledge) {
  const auto base = base_iteration(model, question, knowledge);
  if (!base) return base.error();
  return answer_for(base->scene, question, knowledge);
}

Result<std::vector<WhatIfAnswer>> rank_what_ifs(const Trace& trace, const WhatIfQuestion& question,
                                                const Knowledge& knowledge) {
  const auto base = base_iteration(trace, question, knowledge);
  if (!base) return base.error();
  return ranking_of(base->scene, question, knowledge);
}

Result<std::vector<WhatIfAnswer>> rank_what_ifs(const ModelRequest& model, const WhatIfQuestion& question,
                                                const Knowledge& knowledge) {
  const auto base = base_iteration(model, question, knowledge);
  if (!base) return base.error();
  return ranking_of(base->scene, question, knowledge);
}

}  // namespace forerun
