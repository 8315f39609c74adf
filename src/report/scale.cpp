#include "report/scale.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/table.h"

namespace forerun {
namespace {

std::string scale_ms(Nanoseconds time) {
  const double value = milliseconds(time);
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 1000 ? 1 : 0);
}

std::string scale_gib(Bytes bytes) { return fmt::format("{:.1f}", gibibytes(bytes)); }

std::string scale_rate(double value) {
  return value < 100 ? fmt::format("{:.1f}", value) : grouped(static_cast<int64_t>(value + 0.5));
}

std::vector<std::string> step_cells(const scale::Step& step, bool tokens) {
  return {scale_ms(step.time),
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

nlohmann::ordered_json step_json(const scale::Step& s) {
  const scale::Plan& p = s.plan;
  return {{"gpus", p.gpus()},
          {"plan",
           {{"tensor", p.tensor},
            {"data", p.data},
            {"pipeline", p.pipeline},
            {"chunks", p.chunks},
            {"micro_batch", p.micro_batch},
            {"micro_batches", p.micro_batches},
            {"zero", p.zero},
            {"checkpoint", p.checkpoint},
            {"overlap", p.overlap},
            {"exchange", std::string(name_of(p.exchange))},
            {"servers", p.exchange == scale::Exchange::all_reduce ? 0 : p.servers}}},
          {"global_batch", p.global_batch()},
          {"step_ms", milliseconds(s.time)},
          {"samples_per_second", s.samples_per_second},
          {"tokens_per_second", s.tokens_per_second},
          {"scaling_efficiency", s.efficiency},
          {"model_flops_share", s.model_flops_share},
          {"compute_ms", milliseconds(s.compute)},
          {"bubble_ms", milliseconds(s.bubble)},
          {"tensor_exchange_ms", milliseconds(s.tensor_exchange)},
          {"exchange_ms", milliseconds(s.exchange)},
          {"exposed_ms", milliseconds(s.exposed)},
          {"update_ms", milliseconds(s.update)},
          {"fits", s.fits},
          {"memory",
           {{"total", s.memory.total().value},
            {"parameters", s.memory.parameters.value},
            {"gradients", s.memory.gradients.value},
            {"optimizer_state", s.memory.states.value},
            {"activations", s.memory.activations.value},
            {"transient", s.memory.transient.value},
            {"context", s.memory.context.value}}}};
}

}  // namespace

std::string to_text(const ScaleAnswer& answer, size_t most) {
  std::string text =
      fmt::format("{}  {} parameters  on {}, {} a node\n  within a node {}, between nodes {}\n", answer.model,
                  grouped(answer.parameters), answer.gpu, answer.node, answer.within, answer.between);
  if (answer.searched) {
    text += fmt::format("{} plans considered: {} fit, {} need more memory than a GPU has\n", grouped(answer.considered),
                        grouped(answer.feasible), grouped(answer.too_large));
  }
  const bool tokens = !answer.steps.empty() && answer.steps.front().tokens_per_second > 0;
  Table table({answer.searched ? "" : "GPUs", "plan", "step ms", tokens ? "tokens/s" : "samples/s", "scaling", "peak",
               "bubble", "tensor", "exposed", "update", "GiB"});
  table.align_left(1);
  for (size_t i = 0; i < answer.steps.size() && i < most; ++i) {
    const scale::Step& step = answer.steps[i];
    std::vector<std::string> row = {answer.searched ? fmt::format("{}", i + 1) : grouped(step.plan.gpus()),
                                    describe(step.plan)};
    for (std::string& cell : step_cells(step, tokens)) row.push_back(std::move(cell));
    table.add(std::move(row));
  }
  text += table.text();
  if (!answer.steps.empty()) {
    const scale::Step& shown = answer.searched ? answer.steps.front() : answer.steps.back();
    text += memory_line(shown.memory, answer.device_memory);
    if (!shown.fits)
      text += "  ! does not fit: try --search, zero=1 to 3, checkpoint, or more tensor or pipeline parallelism\n";
  }
  text += "Assumed:\n";
  for (const std::string& line : answer.assumptions) text += "  - " + line + "\n";
  return text;
}

std::string to_json(const ScaleAnswer& answer) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const scale::Step& step : answer.steps) steps.push_back(step_json(step));
  nlohmann::ordered_json json = {
      {"model", answer.model},        {"parameters", answer.parameters}, {"gpu", answer.gpu},
      {"node", answer.node},          {"within", answer.within},         {"between", answer.between},
      {"precision", answer.precision}};
  if (answer.searched) {
    json["considered"] = answer.considered;
    json["feasible"] = answer.feasible;
    json["too_large"] = answer.too_large;
  }
  json[answer.searched ? "plans" : "steps"] = steps;
  json["assumptions"] = answer.assumptions;
  return json.dump();
}

}  // namespace forerun
