#include "api/whatif.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/data_dir.h"
#include "base/options_text.h"
#include "cost/hybrid/whatif_intervals.h"
#include "derive/precision_support.h"
#include "predict/machine_calibration.h"
#include "whatif/host_calibration.h"

namespace forerun {
namespace {

using whatif::EditableIteration;
using whatif::OpTimer;

Result<OpTimer> timer_of(const std::string& gpu, const CostModels& cost_models) {
  const auto device = asked_gpu(gpu, cost_models);
  if (!device) return device.error();
  const hybrid::ResidualModel* residual_model = cost_models.residual_model ? &*cost_models.residual_model : nullptr;
  std::optional<hybrid::OtherGpu> other;
  if (residual_model != nullptr) {
    const auto measured = cost_models.devices.find(residual_model->gpu);
    if (measured && measured->name != device->name) other = hybrid::OtherGpu{*measured, cost_models.scale};
  }
  OpTimer timer(*device, cost_models.analytic, residual_model, std::move(other));
  timer.set_host(cost_models.host, cost_models.loops);
  timer.set_compile(cost_models.compile);
  if (const auto& machine = cost_models.machine) {
    timer.set_machine(
        [&cost_models, on = *device](const Graph& graph, const TrainingSetup& setup, std::vector<OpCost>& costs) {
          calibrate_costs(graph, setup, on, cost_models, costs);
        },
        1 / machine->host_slowness(cost_models.host).value_or(1));
  }
  timer.set_lookup([&cost_models](const std::string& name) { return timer_of(name, cost_models); });
  return timer;
}

// The words of a GPU's name that tell its model: "V100" of "Tesla V100-SXM2-32GB". Connectors and memories tell nothing.
std::set<std::string> model_words(const std::string& name) {
  std::set<std::string> words;
  std::string word;
  for (size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && std::isalnum(static_cast<unsigned char>(name[i])) != 0) {
      word += name[i];
      continue;
    }
    const bool model = word.size() >= 2 && std::isalpha(static_cast<unsigned char>(word[0])) != 0 &&
                       std::isdigit(static_cast<unsigned char>(word.back())) != 0;
    if (model && !word.starts_with("SXM") && !word.starts_with("HBM")) words.insert(word);
    word.clear();
  }
  return words;
}

// The catalogue's GPU for one that a trace names: "Tesla V100-DGXS-32GB" is some V100, "NVIDIA H20" is no H200. Nothing
// where none has its model's name.
std::optional<Device> device_like(const std::string& name, const DeviceCatalogue& devices) {
  if (auto found = devices.find(name)) return std::move(*found);
  for (const std::string& word : model_words(name)) {
    for (const Device& device : devices.devices()) {
      if (model_words(device.name).contains(word)) return device;
    }
  }
  return std::nullopt;
}

using TimerPointer = std::unique_ptr<const OpTimer>;

// Null where the trace's GPU is not known: what needs no cost model can be asked all the same.
Result<TimerPointer> timer_for(const Trace& trace, const WhatIfQuestion& question, const CostModels& cost_models) {
  std::string name = question.gpu;
  if (name.empty() && !trace.gpu.empty()) {
    const auto device = device_like(trace.gpu, cost_models.devices);
    if (!device) return TimerPointer();
    name = device->name;
  }
  auto timer = timer_of(name, cost_models);
  if (!timer) return timer.error();
  return std::make_unique<const OpTimer>(std::move(*timer));
}

Result<EditableIteration> editable_of(const Trace& trace, const WhatIfQuestion& question, const OpTimer* timer) {
  auto edited = EditableIteration::of(trace, timer);
  if (!edited) return edited;
  if (edited->device_occupied() == Nanoseconds(0)) {
    return Error{"no kernel of a GPU was recorded: nothing can be told of what would change it", "",
                 "profile with ProfilerActivity.CUDA beside CPU, where the GPU is"};
  }
  if (timer == nullptr) edited->assume("the GPU " + trace.gpu + " is not in the catalogue: no cost model");
  if (timer != nullptr && !trace.gpu.empty() && trace.gpu != timer->device().name) {
    edited->assume("cost model of a " + timer->device().name + " for the trace's " + trace.gpu);
  }
  if (!question.unprofiled) return edited;
  const Status status = whatif::take_out_profiler(*edited);
  if (!status.ok()) return status.error();
  return edited;
}

void number_modules(const Graph& graph, whatif::TracedModel& model) {
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::forward) continue;
    const bool added = model.modules.try_emplace(graph.module(op), model.calls).second;
    model.calls += added ? 1 : 0;
  }
}

ModelRequest with_batch(ModelRequest request, int64_t batch, double factor) {
  const auto samples = static_cast<int64_t>(std::llround(static_cast<double>(batch) * factor));
  if (factor != 1) request.batch = std::max<int64_t>(1, samples);
  return request;
}

// A capture: its iteration, and the same with another batch where it can be moved.
Result<whatif::TracedModel> captured_iteration(const ModelRequest& request, const Device& device) {
  const auto run = build_run(request, device);
  if (!run) return run.error();
  whatif::TracedModel model;
  model.name = run->id;
  model.input = run->input;
  model.setup = run->setup;
  model.warnings = run->warnings;
  number_modules(run->graph, model);
  model.iteration = [request, batch = run->input.batch](double factor, const Device& on, CompileMode compile) {
    ModelRequest asked = with_batch(request, batch, factor);
    asked.setup.compile = compile;
    return build_run(asked, on);
  };
  return model;
}

// The forward pass of a zoo model, config or ONNX file, and the same with another batch.
Result<whatif::TracedModel> forward_pass(const ModelRequest& request) {
  const auto base = forward_model(request);
  if (!base) return base.error();
  whatif::TracedModel model;
  model.name = request.model;
  model.input = base->input;
  model.setup = chosen_setup(request, base->input.kind);
  number_modules(base->forward, model);
  model.forward = [request, batch = base->input.batch](double factor) -> Result<Graph> {
    auto made = forward_model(with_batch(request, batch, factor));
    if (!made) return made.error();
    return std::move(made->forward);
  };
  return model;
}

Result<EditableIteration> editable_of(const ModelRequest& request, const OpTimer& timer,
                                      const CostModels& cost_models) {
  const bool captured = request.file == FileKind::records;
  auto model = captured ? captured_iteration(request, timer.device()) : forward_pass(request);
  if (!model) return model.error();
  const std::vector<std::string> warnings = model->warnings;
  auto edited = EditableIteration::of_model(std::move(*model), &timer);
  for (const std::string& warning : warnings) {
    if (edited) edited->assume("WARNING: " + warning);
  }
  if (edited) edited->assume("the iteration as `forerun predict` sees it: nothing of it was measured");
  if (const auto& machine = cost_models.machine; machine != nullptr && edited) {
    edited->assume(
        machine->assumption(timer.device(), cost_models, machine->host_slowness(cost_models.host).has_value()));
  }
  const std::string caveat = derive::precision_caveat(request.setup.precision, timer.device());
  if (edited && !caveat.empty()) edited->assume(caveat);
  return edited;
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

// What `forerun predict` says of a model of which nothing was changed but how it is set up.
Result<Prediction> predicted_as(const ModelRequest& model, const EditableIteration& edited,
                                const CostModels& cost_models) {
  ModelRequest request = with_batch(model, edited.model()->input.batch, edited.batch_factor);
  if (model.file == FileKind::records) {  // trained as it was recorded
    request.setup.compile = edited.setup.compile;
  } else {
    request.setup = edited.setup;
    request.default_optimizer = false;
  }
  const Device& device = edited.timer()->device();
  const auto run = build_run(request, device);
  if (!run) return run.error();
  return predicted_speed(*run, device, cost_models, gpu_costs(*run, device, cost_models));
}

// Between which multiples of the prediction eight of ten measurements lie, by what bounds the iteration: `traced` of what a trace
// is changed to, narrower where less of the GPU's work changes. Of what no prediction alone tells.
void set_range(const EditableIteration& base, const EditableIteration& edited, const CostModels& cost_models,
               const WhatIfIntervals& traced, WhatIfAnswer& answer) {
  const GpuDistance distance = edited.timer() == nullptr
                                   ? GpuDistance::beyond
                                   : distance_to(edited.timer()->device(), cost_models, edited.setup.precision);
  RatioInterval gpu = traced.gpu_bound, host = traced.host_bound;
  if (!edited.is_traced()) {
    gpu = interval_of(cost_models.intervals, false, distance);
    host = interval_of(cost_models.intervals, true, distance);
    if (const CompileMode mode = edited.setup.compile; mode != CompileMode::none) {
      gpu = compiled_interval(cost_models, mode, false, distance, gpu);
      host = compiled_interval(cost_models, mode, true, distance, host);
    }
  } else {
    const bool swapped = edited.timer() != nullptr && edited.timer()->device().name != base.timer()->device().name;
    if (swapped) gpu = interval_of(cost_models.intervals, false, distance);
    const double share = changed_share(base.graph(), edited.graph());
    gpu = {1 - traced.noise - share * (1 - gpu.low), 1 + traced.noise + share * (gpu.high - 1)};
  }
  const double busy = milliseconds(edited.device_occupied()), issuing = milliseconds(edited.host_busy());
  const double most = std::max({busy, issuing, 1e-9});
  answer.low_ms = answer.predicted_ms * std::min(1.0, std::max(busy * gpu.low, issuing * host.low) / most);
  answer.high_ms = answer.predicted_ms * std::max(1.0, std::max(busy * gpu.high, issuing * host.high) / most);
  if (most > 0.85 * answer.predicted_ms) return;  // something else decides: communication, loading
  answer.low_ms = std::min(answer.low_ms, traced.elsewhere.low * answer.predicted_ms);
  answer.high_ms = std::max(answer.high_ms, traced.elsewhere.high * answer.predicted_ms);
}

// Times of tasks, and what `forerun predict` says of those that it can tell: all of an unchanged model, and of one that is only set up
// otherwise. Tasks launch the kernels of an op at once and not one after the other, which moves a time by some thousandths; so what they
// say of other changes is taken in proportion to the iteration unchanged.
Status set_times(const BaseIteration& from, const EditableIteration& edited, const CostModels& cost_models,
                 WhatIfAnswer& answer) {
  const EditableIteration& base = from.edited;
  const auto before = base.iteration_time();
  if (!before) return before.error();
  const auto after = edited.iteration_time();
  if (!after) return after.error();
  answer.baseline_ms = milliseconds(*before);
  answer.baseline_gpu_ms = milliseconds(base.device_busy());
  answer.predicted_ms = milliseconds(*after);
  answer.predicted_gpu_ms = milliseconds(edited.device_busy());
  const bool told = from.predicted && edited.only_setup_changed();
  if (from.predicted && base.only_setup_changed()) {
    const auto now = from.predicted(base);
    if (!now) return now.error();
    const double unit = milliseconds(now->times.iteration) / answer.baseline_ms;
    const double gpu_unit = milliseconds(now->times.gpu_busy) / answer.baseline_gpu_ms;
    answer.baseline_ms = milliseconds(now->times.iteration);
    answer.baseline_gpu_ms = milliseconds(now->times.gpu_busy);
    answer.predicted_ms *= unit;
    answer.predicted_gpu_ms *= gpu_unit;
  }
  if (told) {
    const auto then = from.predicted(edited);
    if (!then) return then.error();
    answer.predicted_ms = milliseconds(then->times.iteration);
    answer.predicted_gpu_ms = milliseconds(then->times.gpu_busy);
    answer.low_ms = milliseconds(then->p10);
    answer.high_ms = milliseconds(then->p90);
    return {};
  }
  const auto folder = data_dir();
  if (!folder) return folder.error();
  const auto traced = load_whatif_intervals(*folder / kWhatIfIntervalsFile);
  if (!traced) return traced.error();
  set_range(base, edited, cost_models, *traced, answer);
  return {};
}

Result<WhatIfAnswer> answer_for(const BaseIteration& from, const WhatIfQuestion& question,
                                const CostModels& cost_models, Work& work) {
  const EditableIteration& base = from.edited;
  WhatIfAnswer answer;
  answer.file = base.trace().file;
  for (const whatif::Application& application : question.applications) answer.applied.push_back(application.text);
  answer.traced = base.is_traced();
  answer.unprofiled = question.unprofiled;
  EditableIteration edited = base;
  for (const whatif::Application& application : question.applications) {
    if (const Status status = work.check(); !status.ok()) return status.error();
    const Status status = application.optimization->apply(edited, application.parameters);
    if (!status.ok()) return status.error();
  }
  if (const Status status = work.check(); !status.ok()) return status.error();
  if (const Status status = set_times(from, edited, cost_models, answer); !status.ok()) return status.error();
  answer.assumptions = edited.assumptions;
  return answer;
}

Result<std::vector<WhatIfAnswer>> ranking_of(const BaseIteration& base, const WhatIfQuestion& question,
                                             const CostModels& cost_models, Work& work) {
  std::vector<WhatIfAnswer> ranking;
  const auto& all = whatif::optimizations();
  work.begin("optimizations", std::count_if(all.begin(), all.end(), [](const auto& one) { return one.ranked; }));
  for (const whatif::Optimization& optimization : all) {
    if (!optimization.ranked) continue;
    WhatIfQuestion alone = question;
    alone.applications.push_back({&optimization, {}, std::string(optimization.name)});
    auto answer = answer_for(base, alone, cost_models, work);
    if (const Status status = work.advance(); !status.ok()) return status.error();
    if (answer) ranking.push_back(std::move(*answer));
  }
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const WhatIfAnswer& a, const WhatIfAnswer& b) { return a.gain() > b.gain(); });
  return ranking;
}

// The applications with one value of the parameter that varies; those that do not take it are as they are.
Result<std::vector<whatif::Application>> at_value(const std::vector<whatif::Application>& applications,
                                                  const std::string& key, const std::string& value) {
  std::vector<whatif::Application> made;
  bool taken = false;
  for (const whatif::Application& application : applications) {
    const auto& keys = application.optimization->parameters;
    const bool takes = std::find(keys.begin(), keys.end(), key) != keys.end();
    auto one = takes ? whatif::with_parameter(application, key, value) : Result<whatif::Application>(application);
    if (!one) return one.error();
    made.push_back(std::move(*one));
    taken = taken || takes;
  }
  if (taken) return made;
  std::string names;
  for (const whatif::Application& application : applications) {
    names += (names.empty() ? "" : ", ") + std::string(application.optimization->name);
  }
  return Error{names + " takes no parameter '" + key + "'", "--sweep", "`forerun whatif --help` lists what each takes"};
}

Result<WhatIfSweepAnswer> sweep_over(const BaseIteration& base, const WhatIfQuestion& question,
                                     const WhatIfSweep& sweep, const CostModels& cost_models, Work& work) {
  std::vector<std::vector<whatif::Application>> together = {question.applications};
  if (sweep.each) {
    together.clear();
    for (const whatif::Application& application : question.applications) together.push_back({application});
  }
  WhatIfSweepAnswer answer{.file = base.edited.trace().file, .sweep = sweep};
  work.begin("values", static_cast<int64_t>(together.size() * sweep.values.size()));
  for (const auto& applications : together) {
    WhatIfCurve curve;
    for (const whatif::Application& application : applications) curve.applied.push_back(application.text);
    for (const std::string& value : sweep.values) {
      auto here = at_value(applications, sweep.key, value);
      if (!here) return here.error();
      WhatIfQuestion asked = question;
      asked.applications = std::move(*here);
      auto point = answer_for(base, asked, cost_models, work);
      if (!point) return point.error().within(sweep.key + "=" + value);
      if (const Status status = work.advance(); !status.ok()) return status.error();
      answer.baseline_ms = point->baseline_ms;
      curve.points.push_back(std::move(*point));
    }
    answer.curves.push_back(std::move(curve));
  }
  return answer;
}

}  // namespace

Result<WhatIfSweep> parse_what_if_sweep(const std::string& text) {
  const OptionGrammar grammar{"--sweep", "write PARAMETER=VALUE,VALUE as workers=2,4,8 or bandwidth=1gbe,10gbe"};
  const auto parted = parse_key_value(text, grammar);
  if (!parted) return parted.error();
  WhatIfSweep sweep{.key = parted->first};
  std::set<std::string_view> seen;
  for (const std::string_view value : split_list(parted->second, ",")) {
    if (value.empty()) return Error{"a value is missing in '" + text + "'", grammar.where, grammar.remedy};
    sweep.values.emplace_back(value);
    if (!seen.insert(value).second) {
      return Error{"'" + std::string(value) + "' stands twice", grammar.where, "give each value once"};
    }
  }
  if (sweep.key == "bandwidth") {
    const bool numbers = std::all_of(sweep.values.begin(), sweep.values.end(),
                                     [](const std::string& value) { return number_in(value).has_value(); });
    sweep.key = numbers ? "bandwidth_gbps" : "network";
  }
  return sweep;
}

Result<WhatIfSweepAnswer> sweep_what_ifs(const Trace& trace, const WhatIfQuestion& question, const WhatIfSweep& sweep,
                                         const CostModels& cost_models, const WorkControl& control) {
  Work work(control);
  const auto base = base_iteration(trace, question, cost_models);
  if (!base) return base.error();
  return sweep_over(*base, question, sweep, cost_models, work);
}

Result<WhatIfSweepAnswer> sweep_what_ifs(const ModelRequest& model, const WhatIfQuestion& question,
                                         const WhatIfSweep& sweep, const CostModels& cost_models,
                                         const WorkControl& control) {
  Work work(control);
  const auto base = base_iteration(model, question, cost_models);
  if (!base) return base.error();
  return sweep_over(*base, question, sweep, cost_models, work);
}

Result<BaseIteration> base_iteration(const Trace& trace, const WhatIfQuestion& question,
                                     const CostModels& cost_models) {
  auto timer = timer_for(trace, question, cost_models);
  if (!timer) return timer.error();
  auto edited = editable_of(trace, question, timer->get());
  if (!edited) return edited.error();
  return BaseIteration{std::move(*timer), std::move(*edited)};
}

Result<BaseIteration> base_iteration(const ModelRequest& model, const WhatIfQuestion& question,
                                     const CostModels& cost_models) {
  auto found = timer_of(question.gpu, cost_models);
  if (!found) return found.error();
  if (Status status = derive::check_precision(model.setup.precision, found->device()); !status.ok()) {
    return status.error();
  }
  auto timer = std::make_unique<const OpTimer>(std::move(*found));
  auto edited = editable_of(model, *timer, cost_models);
  if (!edited) return edited.error();
  return BaseIteration{std::move(timer), std::move(*edited), [model, &cost_models](const EditableIteration& changed) {
                         return predicted_as(model, changed, cost_models);
                       }};
}

Result<WhatIfAnswer> what_if(const Trace& trace, const WhatIfQuestion& question, const CostModels& cost_models,
                             const WorkControl& control) {
  Work work(control);
  const auto base = base_iteration(trace, question, cost_models);
  if (!base) return base.error();
  if (const Status status = work.check(); !status.ok()) return status.error();
  return answer_for(*base, question, cost_models, work);
}

Result<WhatIfAnswer> what_if(const ModelRequest& model, const WhatIfQuestion& question, const CostModels& cost_models,
                             const WorkControl& control) {
  Work work(control);
  const auto base = base_iteration(model, question, cost_models);
  if (!base) return base.error();
  if (const Status status = work.check(); !status.ok()) return status.error();
  return answer_for(*base, question, cost_models, work);
}

Result<std::vector<WhatIfAnswer>> rank_what_ifs(const Trace& trace, const WhatIfQuestion& question,
                                                const CostModels& cost_models, const WorkControl& control) {
  Work work(control);
  const auto base = base_iteration(trace, question, cost_models);
  if (!base) return base.error();
  return ranking_of(*base, question, cost_models, work);
}

Result<std::vector<WhatIfAnswer>> rank_what_ifs(const ModelRequest& model, const WhatIfQuestion& question,
                                                const CostModels& cost_models, const WorkControl& control) {
  Work work(control);
  const auto base = base_iteration(model, question, cost_models);
  if (!base) return base.error();
  return ranking_of(*base, question, cost_models, work);
}

}  // namespace forerun
