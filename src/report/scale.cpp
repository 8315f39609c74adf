#include "report/scale.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "report/job_time.h"
#include "report/table.h"

namespace forerun {
namespace {

std::string scale_ms(Nanoseconds time) {
  const double value = milliseconds(time);
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 10 ? 2 : size < 1000 ? 1 : 0);
}

std::string scale_gib(Bytes bytes) { return fmt::format("{:.1f}", gibibytes(bytes)); }

std::string scale_rate(double value) {
  return value < 100 ? fmt::format("{:.1f}", value) : grouped(static_cast<int64_t>(value + 0.5));
}

std::vector<std::string> step_cells(const scale::Step& step, bool tokens) {
  return {scale_ms(step.time),
          scale_ms(step.low) + " to " + scale_ms(step.high),
          scale_rate(tokens ? step.tokens_per_second : step.samples_per_second),
          percent(step.efficiency, 0),
          percent(step.model_flops_share, 0),
          scale_ms(step.bubble),
          scale_ms(step.tensor_exchange),
          fmt::format("{} of {}", scale_ms(step.exposed), scale_ms(step.exchange)),
          scale_ms(step.update),
          scale_gib(step.memory.total()) + (step.fits ? "" : " !")};
}

std::string memory_line(const scale::MemoryUse& m, Bytes device) {
  return fmt::format(
      "Memory of a GPU  {} GiB of {}: parameters {}, gradients {}, optimizer {}, activations {}, transient {}, "
      "context {}\n",
      scale_gib(m.total()), scale_gib(device), scale_gib(m.parameters), scale_gib(m.gradients), scale_gib(m.states),
      scale_gib(m.activations), scale_gib(m.transient), scale_gib(m.context));
}

void write_json(JsonWriter& json, const scale::Plan& p) {
  json.begin_object()
      .field("tensor", p.tensor)
      .field("sequence_parallel", p.sequence)
      .field("context", p.context)
      .field("data", p.data)
      .field("experts", p.experts)
      .field("pipeline", p.pipeline)
      .field("zero_bubble", p.zero_bubble)
      .field("chunks", p.chunks)
      .field("micro_batch", p.micro_batch)
      .field("micro_batches", p.micro_batches)
      .field("zero", p.zero)
      .field("shard", p.zero < 3 ? 0 : p.shards())
      .field("reshard", p.reshard)
      .field("checkpoint", p.checkpoint)
      .field("selective", p.selective)
      .field("overlap", p.overlap)
      .field("offload", p.offload)
      .field("exchange", name_of(p.exchange))
      .field("servers", p.exchange == scale::Exchange::all_reduce ? 0 : p.servers)
      .end_object();
}

void write_json(JsonWriter& json, const scale::MemoryUse& memory) {
  json.begin_object()
      .field("total", memory.total().value)
      .field("parameters", memory.parameters.value)
      .field("gradients", memory.gradients.value)
      .field("optimizer_state", memory.states.value)
      .field("activations", memory.activations.value)
      .field("transient", memory.transient.value)
      .field("context", memory.context.value)
      .end_object();
}

void write_json(JsonWriter& json, const scale::WholeRun& run) {
  json.begin_object()
      .field("ends", run.ends())
      .field("hours", run.hours)
      .field("low_hours", run.low_hours)
      .field("high_hours", run.high_hours)
      .field("goodput", run.goodput)
      .field("failures", run.failures)
      .field("mttf_hours", run.mttf_hours)
      .field("checkpoint_seconds", run.checkpoint_seconds)
      .field("checkpoint_interval_minutes", run.interval_minutes)
      .field("slowdown", run.slowdown)
      .end_object();
}

void write_json(JsonWriter& json, const scale::Step& s, const ScaleAnswer& answer) {
  json.begin_object().field("gpus", s.plan.gpus());
  write_json(json.key("plan"), s.plan);
  json.field("global_batch", s.samples)
      .field("step_ms", milliseconds(s.time))
      .field("step_low_ms", milliseconds(s.low))
      .field("step_high_ms", milliseconds(s.high))
      .field("samples_per_second", s.samples_per_second)
      .field("tokens_per_second", s.tokens_per_second)
      .field("scaling_efficiency", s.efficiency)
      .field("model_flops_share", s.model_flops_share)
      .field("compute_ms", milliseconds(s.compute))
      .field("bubble_ms", milliseconds(s.bubble))
      .field("tensor_exchange_ms", milliseconds(s.tensor_exchange))
      .field("exchange_ms", milliseconds(s.exchange))
      .field("exposed_ms", milliseconds(s.exposed))
      .field("update_ms", milliseconds(s.update))
      .field("fits", s.fits)
      .field("validated", s.unvalidated.empty());
  json.key("unvalidated").begin_array();
  for (const std::string& part : s.unvalidated) json.value(part);
  json.end_array();
  write_json(json.key("parts_ms"), s.parts);
  if (answer.job.any()) {
    write_json(json.key("job"), job_time(answer, s));
    write_json(json.key("whole_run"), whole_run(answer, s));
  }
  write_json(json.key("memory"), s.memory);
  json.end_object();
}

// What the plans that are shown rest on and no published run tells of.
std::string unvalidated_text(const ScaleAnswer& answer, size_t most) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < answer.steps.size() && i < most; ++i) {
    for (const std::string& part : answer.steps[i].unvalidated) {
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    }
  }
  if (parts.empty()) return "";
  return fmt::format("  * never validated: {}{}\n", fmt::join(parts, "; "),
                     answer.searched ? "; ranked by the slow end of the range" : "");
}

// The fastest plan that a search did not put first because of what is not known of it; empty where there is none.
std::string held_back_text(const ScaleAnswer& answer) {
  if (!answer.searched || answer.steps.empty()) return "";
  const auto fastest = std::min_element(answer.steps.begin(), answer.steps.end(),
                                        [](const scale::Step& a, const scale::Step& b) { return a.time < b.time; });
  if (fastest == answer.steps.begin() || fastest->unvalidated.empty()) return "";
  return fmt::format("  faster, if what was never validated holds: {}, {} ms ({})\n", describe(fastest->plan),
                     scale_ms(fastest->time), fmt::join(fastest->unvalidated, "; "));
}

// The hours of the job with each of the steps that are shown.
std::string jobs_text(const ScaleAnswer& answer, size_t most) {
  std::vector<std::string> heading = {answer.searched ? "" : "GPUs", "iterations", "job", "GPU hours"};
  if (answer.power_w > 0) heading.emplace_back("energy");
  if (answer.price) heading.emplace_back("cost");
  heading.emplace_back("spent on");
  Table table(heading);
  table.align_left(heading.size() - 1);
  for (size_t i = 0; i < answer.steps.size() && i < most; ++i) {
    const scale::Step& step = answer.steps[i];
    const JobTime job = job_time(answer, step);
    std::vector<std::string> row = {answer.searched ? fmt::format("{}", i + 1) : grouped(step.plan.gpus()),
                                    grouped(job.iterations), duration_text(job.hours), scale_rate(job.gpu_hours())};
    if (job.energy) row.push_back(energy_text(job.energy->expected));
    if (const auto cost = job.cost(); cost) row.push_back(money_text(cost->expected));
    row.push_back(parts_text(job));
    table.add(row);
  }
  return "The job\n" + table.text();
}

// Where the time of a plan goes, beside that of the best one, and what makes most of the difference.
std::string explained_text(const scale::Step& plan, const ScaleAnswer& answer) {
  const scale::Step& best = answer.steps.front();
  struct Part {
    const char* name;
    Nanoseconds own, of_best;
  };
  const Part parts[] = {{"computation", plan.compute, best.compute},
                        {"bubble", plan.bubble, best.bubble},
                        {"exchange within groups", plan.tensor_exchange, best.tensor_exchange},
                        {"exposed exchange", plan.exposed, best.exposed},
                        {"update", plan.update, best.update}};
  Table table({"", "this plan ms", "the first ms", "more ms"});
  const Part* most = parts;
  for (const Part& part : parts) {
    table.add({part.name, scale_ms(part.own), scale_ms(part.of_best), scale_ms(part.own - part.of_best)});
    if (part.own - part.of_best > most->own - most->of_best) most = &part;
  }
  table.add({"step", scale_ms(plan.time), scale_ms(best.time), scale_ms(plan.time - best.time)});
  std::string why;
  if (!plan.fits) {
    why = fmt::format("It needs {} GiB, more than the GPU's {}.", scale_gib(plan.memory.total()),
                      scale_gib(answer.device_memory));
  } else if (plan.time > best.time) {
    why = fmt::format("It takes {} of the first's time; most of the difference is {}.",
                      percent(milliseconds(plan.time) / milliseconds(best.time), 0), most->name);
  } else if (plan.time < best.time && !plan.unvalidated.empty()) {
    why =
        fmt::format("It is faster if what was never validated holds ({}), and is ranked by the slow end of its range.",
                    fmt::join(plan.unvalidated, "; "));
  } else {
    why = "It is as fast as the first.";
  }
  return fmt::format("{}\n{}  {} GiB, the first {}. {}\n", describe(plan.plan), table.text(),
                     scale_gib(plan.memory.total()), scale_gib(best.memory.total()), why);
}

// The same with failures, checkpoints and slow GPUs.
std::string whole_runs_text(const ScaleAnswer& answer, size_t most) {
  std::vector<std::string> heading = {answer.searched ? "" : "GPUs",
                                      "a failure every",
                                      "failures",
                                      "checkpoint every",
                                      "goodput",
                                      "whole run",
                                      "between"};
  if (answer.price) heading.emplace_back("cost");
  bool ends = true;
  Table table(heading);
  const auto lasts = [](double hours) { return std::isfinite(hours) ? duration_text(hours) : std::string("for ever"); };
  for (size_t i = 0; i < answer.steps.size() && i < most; ++i) {
    const scale::Step& step = answer.steps[i];
    const scale::WholeRun run = whole_run(answer, step);
    std::vector<std::string> row = {answer.searched ? fmt::format("{}", i + 1) : grouped(step.plan.gpus()),
                                    duration_text(run.mttf_hours),
                                    run.ends() ? fmt::format("{:.{}f}", run.failures, run.failures < 10 ? 1 : 0) : "",
                                    duration_text(run.interval_minutes / 60),
                                    percent(run.goodput, 1),
                                    run.ends() ? duration_text(run.hours) : "never ends",
                                    lasts(run.low_hours) + " and " + lasts(run.high_hours)};
    if (answer.price) {
      row.push_back(run.ends() ? money_text(*answer.price * run.hours * static_cast<double>(step.plan.gpus())) : "");
    }
    table.add(row);
    ends = ends && run.ends();
  }
  const std::string why =
      "  A run that never ends has a failure before a checkpoint is written, time after time: give faster --storage, a "
      "longer --mttf, or fewer GPUs\n";
  return "With failures, checkpoints and slow GPUs\n" + table.text() + (ends ? "" : why);
}

std::string nothing_fits_text(const ScaleAnswer& answer) {
  if (!answer.nearest) return "No plan fits: the model can be cut into none of them; try another --global-batch\n";
  const scale::Step& nearest = *answer.nearest;
  const char* less = nearest.plan.checkpoint ? "" : ", --checkpoint block";
  return fmt::format(
      "No plan fits. The nearest is {}: {} GiB of {}\n  try more --gpus, a GPU with more memory{}{}, or a "
      "shorter sequence\n",
      describe(nearest.plan), scale_gib(nearest.memory.total()), scale_gib(answer.device_memory), less,
      nearest.plan.micro_batch > 1 ? ", a smaller --micro-batch" : "");
}

std::string assumed_text(const ScaleAnswer& answer) {
  std::string text = "Assumed:\n";
  for (const std::string& line : answer.assumptions) text += "  - " + line + "\n";
  return text;
}

}  // namespace

std::string to_text(const ScaleAnswer& answer, size_t rows) {
  const size_t most = answer.searched ? rows : answer.steps.size();
  std::string text =
      fmt::format("{}  {} parameters{}  on {}, {} a node\n  within a node {}, between nodes {}\n", answer.model,
                  grouped(answer.parameters),
                  answer.compile == CompileMode::none ? "" : fmt::format(", compiled ({})", name_of(answer.compile)),
                  answer.gpu, answer.node, answer.within, answer.between);
  if (answer.searched) {
    text += fmt::format(
        "{} plans considered: {} fit, {} need more memory than a GPU has{}\n", grouped(answer.considered),
        grouped(answer.feasible), grouped(answer.too_large),
        answer.impossible > 0 ? fmt::format(", into {} the model cannot be cut", grouped(answer.impossible)) : "");
  }
  if (answer.searched && answer.steps.empty()) return text + nothing_fits_text(answer) + assumed_text(answer);
  const bool tokens = !answer.steps.empty() && answer.steps.front().tokens_per_second > 0;
  Table table({answer.searched ? "" : "GPUs", "plan", "step ms", "range ms", tokens ? "tokens/s" : "samples/s",
               "scaling", "peak", "bubble", "tensor", "exposed", "update", "GiB"});
  table.align_left(1);
  for (size_t i = 0; i < answer.steps.size() && i < most; ++i) {
    const scale::Step& step = answer.steps[i];
    std::vector<std::string> row = {answer.searched ? fmt::format("{}", i + 1) : grouped(step.plan.gpus()),
                                    describe(step.plan) + (step.unvalidated.empty() ? "" : " *")};
    for (std::string& cell : step_cells(step, tokens)) row.push_back(std::move(cell));
    table.add(std::move(row));
  }
  text += table.text();
  text += unvalidated_text(answer, most);
  text += held_back_text(answer);
  if (const scale::Step* shown = shown_step(answer); shown != nullptr) {
    text += memory_line(shown->memory, answer.device_memory);
    if (!shown->fits)
      text += "  ! does not fit: try --search, zero=1 to 3, checkpoint, or more tensor or pipeline parallelism\n";
  }
  if (answer.explained && !answer.steps.empty()) text += explained_text(*answer.explained, answer);
  if (answer.job.any()) text += jobs_text(answer, most) + whole_runs_text(answer, most);
  return text + assumed_text(answer);
}

namespace {

void write_fields(JsonWriter& json, const ScaleAnswer& answer) {
  json.field("model", answer.model)
      .field("parameters", answer.parameters)
      .field("gpu", answer.gpu)
      .field("node", answer.node)
      .field("within", answer.within)
      .field("between", answer.between)
      .field("stack", answer.stack)
      .field("precision", answer.precision);
  if (answer.compile != CompileMode::none) json.field("compile", name_of(answer.compile));
  if (answer.searched) {
    json.field("considered", answer.considered)
        .field("feasible", answer.feasible)
        .field("too_large", answer.too_large)
        .field("impossible", answer.impossible);
  }
  json.key(answer.searched ? "plans" : "steps").begin_array();
  for (const scale::Step& step : answer.steps) write_json(json, step, answer);
  json.end_array();
  if (answer.nearest) write_json(json.key("nearest"), *answer.nearest, answer);
  if (answer.explained) write_json(json.key("explained"), *answer.explained, answer);
  json.field("assumptions", answer.assumptions);
}

JsonWriter begun_answer() {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.scale/1");
  return json;
}

}  // namespace

std::string to_json(const ScaleAnswer& answer) {
  JsonWriter json = begun_answer();
  write_fields(json, answer);
  return json.end_object().take();
}

std::string to_text(const MixedAnswer& answer) {
  std::string text = fmt::format("Data-parallel replicas on {} kinds of GPU, batches {}\n", answer.kinds.size(),
                                 answer.share == BatchShare::by_speed ? "by speed" : "even");
  Table table({"GPUs", "kind", "network", "batch", "own step ms", "waits ms", "GiB", "of"});
  table.align_left(1);
  table.align_left(2);
  for (const KindStep& kind : answer.kinds) {
    table.add({grouped(kind.kind.gpus), kind.kind.gpu, kind.kind.network, grouped(kind.step.plan.micro_batch),
               scale_ms(kind.step.time), scale_ms(kind.waits),
               scale_gib(kind.step.memory.total()) + (kind.step.fits ? "" : " !"), scale_gib(kind.device_memory)});
  }
  return text + table.text() + "\n" + to_text(answer.whole);
}

std::string to_json(const MixedAnswer& answer) {
  JsonWriter json = begun_answer();
  write_fields(json, answer.whole);
  json.field("batches", answer.share == BatchShare::by_speed ? "by-speed" : "even").key("kinds").begin_array();
  for (const KindStep& kind : answer.kinds) {
    json.begin_object()
        .field("gpu", kind.kind.gpu)
        .field("gpus", kind.kind.gpus)
        .field("network", kind.kind.network)
        .field("batch", kind.step.plan.micro_batch)
        .field("own_step_ms", milliseconds(kind.step.time))
        .field("waits_ms", milliseconds(kind.waits))
        .field("fits", kind.step.fits)
        .field("device_memory", kind.device_memory.value);
    write_json(json.key("parts_ms"), kind.step.parts);
    write_json(json.key("memory"), kind.step.memory);
    json.end_object();
  }
  return json.end_array().end_object().take();
}

}  // namespace forerun
