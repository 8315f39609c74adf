#include "api/mixed_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/options_text.h"
#include "cost/collective/link_name.h"

namespace forerun {
namespace {

const OptionGrammar kKindGrammar{"--gpu", "write NAME=NUMBER for each kind of GPU, as h200=16,a100=8"};
constexpr int64_t kMostGpus = 1'000'000;

Result<int64_t> whole_number(const std::string& text) {
  const auto number = number_in(text);
  if (!number || *number < 1 || *number > static_cast<double>(kMostGpus) || *number != std::floor(*number)) {
    return Error{fmt::format("'{}' is no number of GPUs", text), kKindGrammar.where, kKindGrammar.remedy};
  }
  return static_cast<int64_t>(*number);
}

Status check_mixed(const ScaleQuestion& question, const std::vector<GpuKind>& kinds) {
  if (question.search) {
    return Error{"plans are not searched for on mixed GPUs", "--search", "leave it out: replicas are data-parallel"};
  }
  if (!question.within.empty()) {
    return Error{"links within nodes of mixed GPUs are those of each GPU", "--within", "leave it out"};
  }
  for (const GpuKind& kind : kinds) {
    if (kind.gpus % question.node != 0) {
      return Error{fmt::format("{} {} are no whole number of nodes of {}", kind.gpus, kind.gpu, question.node), "--gpu",
                   "a node holds GPUs of one kind: give multiples of --node, or another --node"};
    }
  }
  return {};
}

// The links of the slowest nodes, which all rings go through, as `scale_out` takes them.
struct SlowestLinks {
  std::string within;
  std::string between;
  std::string within_words;
};

Result<SlowestLinks> slowest_links(const std::vector<GpuKind>& kinds, int64_t node, const CostModels& cost_models) {
  SlowestLinks slowest;
  double within = 0;
  double between = 0;
  for (const GpuKind& kind : kinds) {
    const auto device = cost_models.devices.find(kind.gpu);
    if (!device) return device.error();
    const auto network = network_by_name(kind.network, cost_models.devices);
    if (!network) return network.error().within("--network");
    if (slowest.between.empty() || network->bandwidth < between) {
      between = network->bandwidth;
      slowest.between = kind.network;
    }
    const Link link = link_within(*device, node);
    if (slowest.within.empty() || link.bandwidth < within) {
      within = link.bandwidth;
      slowest.within = fmt::format("{:.6f}GB/s", within / 1e9);
      slowest.within_words = fmt::format("{} {:.0f} GB/s a direction", link.name, within / 1e9);
    }
  }
  return slowest;
}

// The step of a cluster whose GPUs are all of one kind.
Result<ScaleAnswer> answer_of_kind(ScaleQuestion question, int64_t micro_batch, const CostModels& cost_models,
                                   const WorkControl& control) {
  question.micro_batch = micro_batch;
  question.global_batch = 0;
  auto answer = scale_out(question, cost_models, control);
  if (!answer) return answer.error();
  const scale::Plan& plan = answer->steps.front().plan;
  const bool groups = plan.tensor * plan.context * plan.experts * plan.pipeline > 1 || plan.shard > 0;
  if (groups || plan.offload || plan.exchange != scale::Exchange::all_reduce) {
    return Error{"mixed GPUs are data-parallel replicas that exchange gradients by all-reduce", "--strategy",
                 "take dp, zero1, zero2 or zero3, or one kind of GPU"};
  }
  return answer;
}

// Samples for each GPU of each kind, so that about `samples` are shared by speed; at least one each.
std::vector<int64_t> dealt(const std::vector<GpuKind>& kinds, const std::vector<double>& speeds, int64_t samples) {
  double all = 0;
  for (size_t k = 0; k < kinds.size(); ++k) all += speeds[k] * static_cast<double>(kinds[k].gpus);
  std::vector<int64_t> batches;
  for (const double speed : speeds) {
    batches.push_back(std::max<int64_t>(1, std::llround(static_cast<double>(samples) * speed / all)));
  }
  return batches;
}

double passes_seconds(const scale::Step& step) {
  return static_cast<double>((step.compute + step.update).value) * 1e-9;
}

// The step of the whole cluster from those of its kinds.
scale::Step whole_step(const std::vector<KindStep>& kinds) {
  const auto slowest = std::max_element(kinds.begin(), kinds.end(),
                                        [](const KindStep& a, const KindStep& b) { return a.step.time < b.step.time; });
  scale::Step whole = slowest->step;
  const double seconds = static_cast<double>(whole.time.value) * 1e-9;
  whole.samples = 0;
  double ideal = 0;  // samples a second of GPUs that never wait
  double peak = 0;   // the same at the peak of their units
  for (const KindStep& kind : kinds) {
    const auto gpus = static_cast<double>(kind.kind.gpus);
    const auto all = static_cast<double>(kind.step.plan.gpus());
    whole.samples += kind.kind.gpus * kind.step.plan.micro_batch;
    ideal += gpus / all * kind.step.samples_per_second / kind.step.efficiency;
    peak += gpus / all * kind.step.samples_per_second / kind.step.model_flops_share;
    whole.fits = whole.fits && kind.step.fits;
  }
  const double tokens = whole.tokens_per_second / whole.samples_per_second;
  whole.samples_per_second = static_cast<double>(whole.samples) / seconds;
  whole.tokens_per_second = tokens * whole.samples_per_second;
  whole.efficiency = whole.samples_per_second / ideal;
  whole.model_flops_share = whole.samples_per_second / peak;
  whole.unvalidated.emplace_back("GPUs of several kinds");
  return whole;
}

}  // namespace

Result<std::vector<GpuKind>> parse_gpu_kinds(const std::string& gpus, const std::optional<std::string>& given) {
  const auto named = parse_key_values(gpus, kKindGrammar);
  if (!named) return named.error();
  const OptionGrammar network_grammar{"--network", "give one for all, or NAME=LINK for each kind of GPU"};
  KeyValues links;
  const std::string networks = given.value_or("");
  if (names_kinds(networks)) {
    auto parsed = parse_key_values(networks, network_grammar);
    if (!parsed) return parsed.error();
    links = std::move(*parsed);
  }
  std::vector<GpuKind> kinds;
  for (const KeyValue& kind : *named) {
    const std::string& gpu = kind.first;
    const auto count = whole_number(kind.second);
    if (!count) return count.error();
    const auto link = std::find_if(links.begin(), links.end(), [&](const KeyValue& of) { return of.first == gpu; });
    if (names_kinds(networks) && link == links.end()) {
      return Error{fmt::format("the nodes of {} have no network", gpu), network_grammar.where, network_grammar.remedy};
    }
    kinds.push_back({gpu, *count, link == links.end() ? networks : link->second});
  }
  for (const KeyValue& link : links) {
    const std::string& gpu = link.first;
    const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const GpuKind& kind) { return kind.gpu == gpu; });
    if (!known) return Error{fmt::format("--gpu names no {}", gpu), network_grammar.where, network_grammar.remedy};
  }
  return kinds;
}

Result<MixedAnswer> scale_out_mixed(const ScaleQuestion& asked, BatchShare share, const CostModels& cost_models,
                                    const WorkControl& control) {
  auto kinds = parse_gpu_kinds(asked.gpu, asked.network);
  if (!kinds) return kinds.error();
  if (!asked.network) {
    for (GpuKind& kind : *kinds) {
      const auto device = cost_models.devices.find(kind.gpu);
      if (!device) return device.error();
      kind.network = usual_network(*device, asked.node).name;
    }
  }
  if (const Status status = check_mixed(asked, *kinds); !status) return status.error();
  const auto links = slowest_links(*kinds, asked.node, cost_models);
  if (!links) return links.error();
  int64_t gpus = 0;
  for (const GpuKind& kind : *kinds) gpus += kind.gpus;
  if (asked.global_batch > 0 && asked.global_batch < gpus) {
    return Error{fmt::format("{} samples do not go round {} GPUs", asked.global_batch, gpus), "--global-batch",
                 "give each GPU one at least"};
  }
  if (share == BatchShare::even && asked.global_batch % gpus != 0) {
    return Error{fmt::format("{} samples are not even on {} GPUs", asked.global_batch, gpus), "--global-batch",
                 "give a multiple of the number of GPUs, or --batches by-speed"};
  }
  ScaleQuestion question = asked;
  question.gpus = {gpus};
  question.network = links->between;
  question.within = links->within;
  MixedAnswer mixed{.whole = {}, .kinds = {}, .share = share};
  const auto ask = [&](const std::vector<int64_t>& batches) -> Status {
    mixed.kinds.clear();
    for (size_t k = 0; k < kinds->size(); ++k) {
      question.gpu = (*kinds)[k].gpu;
      auto answer = answer_of_kind(question, batches[k], cost_models, control);
      if (!answer) return answer.error();
      mixed.kinds.push_back(
          {.kind = (*kinds)[k], .step = answer->steps.front(), .waits = {}, .device_memory = answer->device_memory});
      if (k == 0 || answer->steps.front().time > mixed.whole.steps.front().time) mixed.whole = std::move(*answer);
    }
    return {};
  };
  const int64_t even = asked.global_batch > 0 ? asked.global_batch / gpus : asked.micro_batch;
  if (Status status = ask(std::vector<int64_t>(kinds->size(), even)); !status) return status.error();
  const int64_t samples =
      asked.global_batch > 0 ? asked.global_batch : gpus * mixed.kinds.front().step.plan.micro_batch;
  // The speed of a GPU grows with its batch, so it is asked twice.
  for (int round = 0; round < 2 && share == BatchShare::by_speed; ++round) {
    std::vector<double> speeds;
    for (const KindStep& kind : mixed.kinds) {
      speeds.push_back(static_cast<double>(kind.step.plan.micro_batch) / passes_seconds(kind.step));
    }
    if (Status status = ask(dealt(*kinds, speeds, samples)); !status) return status.error();
  }
  mixed.whole.steps = {whole_step(mixed.kinds)};
  mixed.whole.within = links->within_words + " (the slowest)";
  mixed.whole.between += " (the slowest)";
  mixed.whole.gpu.clear();
  for (const GpuKind& kind : *kinds) {
    mixed.whole.gpu += fmt::format("{}{} {}", mixed.whole.gpu.empty() ? "" : " and ", kind.gpus, kind.gpu);
  }
  for (KindStep& kind : mixed.kinds) kind.waits = mixed.whole.steps.front().time - kind.step.time;
  if (!asked.network) {
    mixed.whole.assumptions.emplace_back(
        "nodes of each kind have the network that is usual with its GPUs; --network names others");
  }
  mixed.whole.assumptions.emplace_back(
      "GPUs of several kinds: all wait for the slowest, and gradients go at the pace of the slowest links");
  return mixed;
}

}  // namespace forerun
