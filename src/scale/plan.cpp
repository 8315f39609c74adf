#include "scale/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <vector>

#include "base/nearest.h"
#include "base/options_text.h"

namespace forerun::scale {
namespace {

constexpr const char* kPlanRemedy = "write for example tp=8,pp=4,zero=1,mb=2,checkpoint, or dp, zero3, ps, tp, pp";

bool whole_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= (int64_t{1} << 30);
}

// `sets`: what of a plan the word decides; a plan decides nothing twice.
struct WordEffect {
  const char* word;
  const char* sets;
  void (*apply)(PlanRequest&);
};
const WordEffect kWords[] = {
    {"dp", "dp", [](PlanRequest&) {}},
    {"ddp", "dp", [](PlanRequest&) {}},
    {"zero1", "zero", [](PlanRequest& r) { r.plan.zero = 1; }},
    {"zero2", "zero", [](PlanRequest& r) { r.plan.zero = 2; }},
    {"zero3", "zero", [](PlanRequest& r) { r.plan.zero = 3; }},
    {"fsdp", "zero", [](PlanRequest& r) { r.plan.zero = 3; }},
    {"hsdp", "hsdp",
     [](PlanRequest& r) {
       r.plan.zero = 3;
       r.names_hsdp = true;
     }},
    {"ps", "servers or all-reduce", [](PlanRequest& r) { r.plan.exchange = Exchange::servers; }},
    {"ps-async", "servers or all-reduce", [](PlanRequest& r) { r.plan.exchange = Exchange::servers_async; }},
    {"tp", "tp", [](PlanRequest& r) { r.names_tensor = true; }},
    {"pp", "pp", [](PlanRequest& r) { r.names_pipeline = true; }},
    {"bsp", "the schedule of gradients", [](PlanRequest& r) { r.plan.schedule = Schedule::whole; }},
    {"wfbp", "the schedule of gradients", [](PlanRequest& r) { r.plan.schedule = Schedule::each; }},
    {"mg-wfbp", "the schedule of gradients", [](PlanRequest& r) { r.plan.schedule = Schedule::merged; }},
    {"bytescheduler", "the schedule of gradients", [](PlanRequest& r) { r.plan.schedule = Schedule::prioritised; }},
    {"checkpoint", "what is run again", [](PlanRequest& r) { r.plan.checkpoint = true; }},
    {"selective", "what is run again", [](PlanRequest& r) { r.plan.selective = true; }},
    {"sp", "sp", [](PlanRequest& r) { r.plan.sequence = true; }},
    {"zb", "zb", [](PlanRequest& r) { r.plan.zero_bubble = true; }},
    {"no-reshard", "no-reshard", [](PlanRequest& r) { r.plan.reshard = false; }},
    {"no-overlap", "no-overlap", [](PlanRequest& r) { r.plan.overlap = false; }},
    {"offload", "offload", [](PlanRequest& r) { r.plan.offload = true; }},
};

struct NumberEffect {
  const char* name;
  int64_t Plan::*field;
};
constexpr NumberEffect kNumberFields[] = {
    {"tp", &Plan::tensor},      {"cp", &Plan::context},  {"dp", &Plan::data},
    {"ep", &Plan::experts},     {"pp", &Plan::pipeline}, {"chunks", &Plan::chunks},
    {"mb", &Plan::micro_batch}, {"shard", &Plan::shard}, {"servers", &Plan::servers}};

std::vector<std::string> plan_words() {
  std::vector<std::string> words;
  for (const WordEffect& word : kWords) words.emplace_back(word.word);
  for (const NumberEffect& number : kNumberFields) words.push_back(std::string(number.name) + "=N");
  words.emplace_back("zero=N");
  return words;
}

// What the parts of a plan that were read so far decide.
using Decided = std::set<std::string, std::less<>>;

Status decide(std::string_view what, std::string_view part, Decided& decided) {
  if (decided.emplace(what).second) return {};
  return Error{fmt::format("'{}' decides {} a second time", part, what), "--strategy", "give each part once"};
}

Status read_part(std::string_view part, PlanRequest& request, Decided& decided) {
  const auto named = split_key_value(part);
  if (!named) {
    for (const WordEffect& word : kWords) {
      if (part == word.word) {
        word.apply(request);
        return decide(word.sets, part, decided);
      }
    }
    return Error{fmt::format("'{}' is no part of a plan", part), "--strategy",
                 did_you_mean(std::string(part), plan_words())};
  }
  const auto [name, text] = *named;
  int64_t value = 0;
  if (name == "zero" && (text == "0" || text == "1" || text == "2" || text == "3")) {
    request.plan.zero = text[0] - '0';
    return decide(name, part, decided);
  }
  for (const NumberEffect& number : kNumberFields) {
    if (name != number.name) continue;
    if (!whole_number(text, value)) {
      return Error{fmt::format("'{}' is no whole number from 1", text), fmt::format("--strategy {}", name),
                   kPlanRemedy};
    }
    request.plan.*number.field = value;
    return decide(name, part, decided);
  }
  return Error{fmt::format("'{}' is no part of a plan", part), "--strategy", kPlanRemedy};
}

}  // namespace

std::string_view name_of(Exchange exchange) {
  switch (exchange) {
    case Exchange::all_reduce: return "all-reduce";
    case Exchange::servers: return "parameter servers";
    case Exchange::servers_async: return "parameter servers, asynchronous";
  }
  return "";
}

std::string_view name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::buckets: return "buckets";
    case Schedule::whole: return "BSP";
    case Schedule::each: return "WFBP";
    case Schedule::merged: return "MG-WFBP";
    case Schedule::prioritised: return "ByteScheduler";
  }
  return "";
}

std::string describe(const Plan& plan) {
  std::string text = fmt::format("tp {}", plan.tensor);
  if (plan.sequence) text += " sp";
  if (plan.context > 1) text += fmt::format(" cp {}", plan.context);
  text += fmt::format(" dp {}", plan.data);
  if (plan.experts > 1) text += fmt::format(" ep {}", plan.experts);
  text += fmt::format(" pp {}", plan.pipeline);
  if (plan.chunks > 1) text += fmt::format(" x{}", plan.chunks);
  if (plan.zero_bubble) text += " zb";
  text += fmt::format(", mb {} x {}", plan.micro_batch, plan.micro_batches);
  if (plan.zero > 0) text += fmt::format(", ZeRO {}", plan.zero);
  if (plan.shard > 0) text += fmt::format(" in {}", plan.shard);
  if (!plan.reshard) text += ", no reshard";
  if (plan.offload) text += ", offload";
  if (plan.checkpoint) text += ", checkpoint";
  if (plan.selective) text += ", selective";
  if (plan.schedule != Schedule::buckets) text += fmt::format(", {}", name_of(plan.schedule));
  if (!plan.overlap) text += ", no overlap";
  if (plan.exchange != Exchange::all_reduce) {
    text += fmt::format(", {} server{}{}", plan.servers, plan.servers == 1 ? "" : "s",
                        plan.exchange == Exchange::servers_async ? " async" : "");
  }
  return text;
}

Result<PlanRequest> parse_plan(std::string_view text) {
  PlanRequest request;
  request.plan.data = 0;
  request.plan.micro_batch = 0;
  request.plan.micro_batches = 0;
  request.plan.servers = 0;
  Decided decided;
  for (const std::string_view part : split_list(text, ",+ ")) {
    if (part.empty()) continue;
    if (const Status status = read_part(part, request, decided); !status) return status.error();
  }
  if (decided.empty()) return Error{"the plan is empty", "--strategy", kPlanRemedy};
  if (decided.contains("servers") && request.plan.exchange == Exchange::all_reduce) {
    return Error{"servers=N goes with parameter servers only", "--strategy",
                 "write ps,servers=N or ps-async,servers=N"};
  }
  if (request.names_hsdp && decided.contains("zero")) {
    return Error{"hsdp is ZeRO 3 within each node: nothing else says what is sharded", "--strategy",
                 "leave out zero and fsdp, or write fsdp,shard=N"};
  }
  if (request.names_hsdp && decided.contains("shard")) {
    return Error{"hsdp shards among the GPUs of a node, and shard=N among N", "--strategy",
                 "write hsdp, or fsdp,shard=N for groups of another size"};
  }
  for (const char* part : {"tp", "pp", "sp", "zb"}) {
    request.names_layers = request.names_layers || decided.contains(part);
  }
  return request;
}

bool fills_nodes(int64_t group, int64_t gpus, int64_t node) {
  return gpus <= node || node % group == 0 || group % node == 0;
}

namespace {

// Sizes that one group of a plan may have: divisors of `of` whose groups, `inner` times as many neighbours, fill nodes.
struct GroupSizes {
  const char* name;
  int64_t of;
  int64_t inner = 1;
  int64_t gpus = 1, node = 1;
  std::function<bool(int64_t)> possible = {};  // what else decides; may be empty

  [[nodiscard]] bool contain(int64_t size) const {
    return of % size == 0 && fills_nodes(size * inner, gpus, node) && (!possible || possible(size));
  }
  // The nearest ones on both sides of what was wanted.
  [[nodiscard]] std::string nearest(int64_t wanted) const {
    int64_t below = 1, above = 0;
    for (int64_t size = 2; size <= of && above == 0; ++size) {
      if (!contain(size)) continue;
      if (size < wanted) below = size;
      if (size > wanted) above = size;
    }
    if (above > 0) return fmt::format("choose {0}={1} or {0}={2}", name, below, above);
    return below > 1 ? fmt::format("choose {}={}", name, below) : fmt::format("leave out {}", name);
  }
};

}  // namespace

std::string nearest_tensor_groups(int64_t wanted, int64_t gpus, int64_t node,
                                  const std::function<bool(int64_t)>& shares) {
  return GroupSizes{"tp", gpus, 1, gpus, node, shares}.nearest(wanted);
}

namespace {

// Tensor, context and pipeline parallelism that divide the GPUs.
Status check_factors(const PlanRequest& request, const Plan& plan, int64_t gpus, int64_t node) {
  const std::pair<const char*, int64_t> factors[] = {
      {"tp", plan.tensor}, {"cp", plan.context}, {"pp", plan.pipeline}, {"dp", std::max<int64_t>(plan.data, 1)}};
  for (const auto& [name, factor] : factors) {
    if (factor <= gpus) continue;
    return Error{fmt::format("{}={} is more than {} GPUs", name, factor, gpus), "--strategy",
                 "choose numbers whose product is --gpus"};
  }
  const int64_t model = plan.tensor * plan.context;  // each at most as many as GPUs
  if (model <= gpus && plan.gpus() == gpus) return {};
  const bool open = request.plan.data == 0;
  for (const auto& [name, factor] : factors) {
    if (factor == 1 || name == std::string_view("dp")) continue;
    int64_t others = 1;  // times which this one is what the GPUs must be divided by
    for (const auto& [other, size] : factors) {
      if (other != name && (!open || other != std::string_view("dp")) && others <= gpus) others *= size;
    }
    if (gpus % others != 0 || (!open && gpus / others == factor)) continue;
    if (!open) break;
    const GroupSizes sizes{.name = name,
                           .of = gpus / others,
                           .inner = name == std::string_view("cp") ? plan.tensor : 1,
                           .gpus = name == std::string_view("pp") ? 1 : gpus,
                           .node = node};
    return Error{fmt::format("{}={} does not divide {} GPUs{}", name, factor, gpus,
                             others > 1 ? fmt::format(" over {}", others) : ""),
                 "--strategy", sizes.nearest(factor)};
  }
  const std::string context = plan.context > 1 ? fmt::format(" x context {}", plan.context) : "";
  return Error{fmt::format("tensor {}{} x data {} x pipeline {} is not {} GPUs", plan.tensor, context, plan.data,
                           plan.pipeline, gpus),
               "--strategy",
               open ? "choose numbers whose product divides --gpus"
                    : "leave out dp=, or choose numbers whose product is --gpus"};
}

// Groups that exchange in every layer lie within nodes, or fill several: no launcher lays them across the ends of nodes.
Status check_nodes(const Plan& plan, int64_t node) {
  const int64_t gpus = plan.gpus();
  const auto across = [&](const char* what, const GroupSizes& sizes, int64_t size) {
    return Error{fmt::format("{} of {} lie across the ends of nodes of {}", what, size * sizes.inner, node),
                 fmt::format("--strategy {}", sizes.name), sizes.nearest(size) + ", or another --node"};
  };
  const GroupSizes tensor{"tp", gpus / (plan.context * plan.pipeline), 1, gpus, node};
  if (!fills_nodes(plan.tensor, gpus, node)) return across("tensor groups", tensor, plan.tensor);
  const int64_t model = plan.tensor * plan.context;
  const GroupSizes context{"cp", gpus / (plan.tensor * plan.pipeline), plan.tensor, gpus, node};
  if (plan.context > 1 && !fills_nodes(model, gpus, node)) return across("context groups", context, plan.context);
  const GroupSizes experts{"ep", plan.data, model, gpus, node};
  if (plan.data % plan.experts != 0) {
    return Error{
        fmt::format("experts, or tables, cannot be dealt out to {} of {} data-parallel GPUs", plan.experts, plan.data),
        "plan", experts.nearest(plan.experts)};
  }
  if (plan.experts > 1 && !fills_nodes(model * plan.experts, gpus, node)) {
    return across("groups of experts", experts, plan.experts);
  }
  if (plan.shard == 0) return {};
  const GroupSizes shards{"shard", plan.replicas(), plan.tensor, gpus, node};
  if (plan.replicas() % plan.shard != 0) {
    return Error{
        fmt::format("{} GPUs with the same weights are not divided into groups of {}", plan.replicas(), plan.shard),
        "plan", shards.nearest(plan.shard)};
  }
  if (!fills_nodes(plan.tensor * plan.shard, gpus, node)) return across("shards", shards, plan.shard);
  return {};
}

// Among as many GPUs of a node as have the same weights; within one node that is all of ZeRO 3.
Status shard_within_nodes(int64_t node, Plan& plan) {
  if (node % plan.tensor != 0 || node == plan.tensor) {
    return Error{
        fmt::format("tensor groups of {} leave no GPUs with the same weights in a node of {}", plan.tensor, node),
        "--strategy hsdp", "choose a smaller tp that divides the node, or write fsdp,shard=N"};
  }
  const int64_t within = node / plan.tensor;
  if (plan.replicas() > within) plan.shard = within;
  return {};
}

// The usual one; of a global batch the largest up to it that divides each replica's share.
int64_t usual_micro_batch(int64_t usual, int64_t global_batch, int64_t data) {
  if (global_batch == 0) return usual;
  if (global_batch % data != 0) return 1;
  int64_t micro_batch = std::min(usual, global_batch / data);
  while (global_batch / data % micro_batch != 0) --micro_batch;
  return micro_batch;
}

}  // namespace

Result<Plan> complete(const PlanRequest& request, int64_t gpus, int64_t node, int64_t global_batch, int64_t micro_batch,
                      int64_t usual) {
  Plan plan = request.plan;
  const int64_t others = gpus / plan.context;
  if (request.names_tensor && plan.tensor == 1) plan.tensor = std::min(node, others / plan.pipeline);
  if (request.names_pipeline && plan.pipeline == 1) plan.pipeline = std::max<int64_t>(others / plan.tensor, 1);
  const int64_t model = std::min(plan.tensor, gpus) * std::min(plan.context, gpus) * std::min(plan.pipeline, gpus);
  if (plan.data == 0) plan.data = std::max<int64_t>(gpus / model, 1);
  if (const Status status = check_factors(request, plan, gpus, node); !status) return status.error();
  if (request.names_hsdp) {
    if (const Status status = shard_within_nodes(node, plan); !status) return status.error();
  }
  if (const Status status = check_nodes(plan, node); !status) return status.error();
  if (plan.zero == 3 && plan.shard == plan.replicas()) plan.shard = 0;  // which is plain ZeRO 3
  if (plan.micro_batch == 0) plan.micro_batch = micro_batch;
  if (plan.micro_batch == 0) plan.micro_batch = usual_micro_batch(usual, global_batch, plan.data);
  const int64_t samples = plan.data * plan.micro_batch;
  if (global_batch == 0) {
    plan.micro_batches = plan.pipeline > 1 ? 4 * plan.pipeline : 1;
  } else if (global_batch % samples != 0) {
    const int64_t below = global_batch / samples * samples;
    return Error{fmt::format("a global batch of {} is not a multiple of {} (data parallelism {} x micro-batch {})",
                             global_batch, samples, plan.data, plan.micro_batch),
                 "--global-batch",
                 below > 0 ? fmt::format("choose {} or {}, or another mb=", below, below + samples)
                           : fmt::format("choose {}, or another mb=", samples)};
  } else {
    plan.micro_batches = global_batch / samples;
  }
  const int64_t nodes = std::max<int64_t>(gpus / std::max<int64_t>(node, 1), 1);
  if (plan.servers == 0) plan.servers = nodes;
  if (plan.exchange != Exchange::all_reduce && plan.servers > nodes) {
    return Error{fmt::format("{} servers cannot run on nodes of their own: there {}", plan.servers,
                             nodes == 1 ? "is one node" : fmt::format("are {} nodes", nodes)),
                 "--strategy servers", fmt::format("choose servers={}, or leave it out", nodes)};
  }
  if (const Status status = check_plan(plan); !status) return status.error();
  return plan;
}

namespace {

// Groups within the data-parallel GPUs.
Status check_groups(const Plan& plan) {
  if (plan.data % plan.experts != 0 || (plan.shard > 0 && plan.replicas() % plan.shard != 0)) {
    return Error{"groups of experts or shards do not divide the GPUs with the same weights", "plan",
                 "choose divisors of their number"};
  }
  if (plan.shard == 0) return {};
  if (plan.zero < 3) return Error{"shard=N says among how many GPUs ZeRO 3 divides", "plan", "give zero=3 (fsdp) too"};
  if (plan.experts > 1) return Error{"experts are not modelled with shard=N", "plan", "leave out one of them"};
  return {};
}

// A schedule that would change nothing is refused.
Status check_schedule(const Plan& plan) {
  if (plan.schedule == Schedule::buckets) return {};
  if (plan.exchange == Exchange::servers_async) {
    return Error{fmt::format("nobody waits for asynchronous servers, {} or not", name_of(plan.schedule)), "plan",
                 "leave out the schedule, or take ps"};
  }
  const bool each = plan.schedule == Schedule::each || plan.schedule == Schedule::prioritised;
  if (plan.exchange == Exchange::servers && each) {
    return Error{fmt::format("gradients go to parameter servers one by one, in the order they come: {} changes nothing",
                             name_of(plan.schedule)),
                 "plan", "leave it out, or take bsp or mg-wfbp"};
  }
  if (!plan.overlap && plan.schedule != Schedule::whole) {
    return Error{fmt::format("{} sends gradients beside the backward pass", name_of(plan.schedule)), "plan",
                 "leave out no-overlap, or take bsp"};
  }
  return {};
}

}  // namespace

Status check_plan(const Plan& plan) {
  const auto wrong = [](std::string what, std::string remedy) {
    return Error{std::move(what), "plan", std::move(remedy)};
  };
  if (plan.chunks > 1 && plan.pipeline == 1) return wrong("chunks need a pipeline", "give pp=2 or more");
  if (plan.chunks > 1 && plan.micro_batches % plan.pipeline != 0) {
    return wrong(fmt::format("{} micro-batches do not fill rounds of {} stages", plan.micro_batches, plan.pipeline),
                 "interleaving needs a multiple; change the global batch or the micro-batch");
  }
  if (plan.zero >= 2 && plan.pipeline > 1) {
    return wrong(fmt::format("ZeRO {} does not go with a pipeline", plan.zero),
                 "gradients are added up over micro-batches there; use zero=1");
  }
  if (plan.offload && plan.zero == 0 && plan.replicas() > 1) {
    return wrong("replicas that have a whole optimizer each would all make the same step on their hosts",
                 "give zero=1, 2 or 3 (fsdp) with offload");
  }
  const bool plain = plan.zero == 0 && plan.pipeline == 1 && plan.tensor == 1 && plan.context == 1 && plan.experts == 1;
  if (plan.schedule != Schedule::buckets && !plain) {
    return wrong(fmt::format("{} goes with plain data parallelism only", name_of(plan.schedule)),
                 "leave out tp, cp, ep, pp and zero");
  }
  if (plan.exchange != Exchange::all_reduce && !plain) {
    return wrong("parameter servers go with plain data parallelism only", "leave out tp, cp, ep, pp and zero");
  }
  if (const Status status = check_schedule(plan); !status) return status;
  if (plan.checkpoint && plan.selective) {
    return wrong("layers are run again whole or selectively", "give one of checkpoint and selective");
  }
  if (plan.sequence && plan.tensor == 1) {
    return wrong("sequence parallelism is a tensor group's", "give tp=2 or more, or cp=N to divide whole sequences");
  }
  if (plan.zero_bubble && (plan.pipeline == 1 || plan.chunks > 1)) {
    return wrong(plan.pipeline == 1 ? "a zero-bubble schedule needs a pipeline"
                                    : "the zero-bubble schedule that is modelled (ZB-H1) has one chunk a GPU",
                 plan.pipeline == 1 ? "give pp=2 or more" : "leave out chunks");
  }
  if (!plan.reshard && plan.zero < 3) {
    return wrong("only ZeRO 3 reshards parameters", "give zero=3, or leave out no-reshard");
  }
  return check_groups(plan);
}

}  // namespace forerun::scale
