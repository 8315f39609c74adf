#include "lab/papers/published_plans.h"

#include <algorithm>
#include <cmath>

#include "base/data_dir.h"
#include "base/options_text.h"

namespace forerun::scale {
namespace {

double setting(const PublishedPlan& plan, const std::string& name) {
  const auto found =
      std::find_if(plan.settings.begin(), plan.settings.end(), [&](const auto& one) { return one.first == name; });
  return found == plan.settings.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
}

// Of a step, by the formula of Narayanan et al. (2021), which counts the repeated forward pass.
double megatron_flops(const PublishedPlan& plan, double sequence) {
  const double h = setting(plan, "width"), l = setting(plan, "layers"), v = setting(plan, "vocab");
  return 96 * static_cast<double>(plan.batch) * sequence * l * h * h * (1 + sequence / (6 * h) + v / (16 * l * h));
}

double step_seconds(const PublishedPlan& plan, const std::string& flops, JsonObject& row) {
  const auto gpus = static_cast<double>(plan.gpus);
  const auto sequence = static_cast<double>(row.integer("sequence"));
  if (row.has("step_s")) return row.number("step_s");
  if (row.has("tokens_per_second_per_gpu")) {
    return static_cast<double>(plan.batch) * sequence / (row.number("tokens_per_second_per_gpu") * gpus);
  }
  if (flops != "megatron-2021") row.fail("teraflops_per_gpu", "is by no known formula", "name it in flops");
  return megatron_flops(plan, sequence) / (row.number("teraflops_per_gpu") * 1e12 * gpus);
}

void read_settings(JsonObject& row, PublishedPlan& plan) {
  const auto read = parse_key_values(row.text("set"), {"set", "write NAME=VALUE,..."});
  if (!read) return row.fail("set", read.error().message());
  plan.settings = *read;
}

PublishedPlan read_plan(const PublishedPlan& of_source, const std::string& flops, JsonObject row) {
  PublishedPlan plan = of_source;
  plan.model = row.text("model");
  plan.zoo = row.text("zoo");
  read_settings(row, plan);
  plan.gpu = row.text("gpu");
  plan.network = row.text("network");
  if (row.has("precision")) plan.precision = row.text("precision");
  plan.plan = row.text("plan");
  plan.gpus = row.integer("gpus");
  plan.micro_batch = row.integer("micro_batch", Sign::not_negative);
  plan.batch = row.integer("batch");
  plan.recompute = row.number("recompute", Sign::not_negative);
  if (plan.recompute > 1) row.fail("recompute", "is a share of the layers", "give 0 to 1");
  plan.search = row.has("search") && row.flag("search");
  plan.step_seconds = step_seconds(plan, flops, row);
  return plan;
}

}  // namespace

Result<std::vector<PublishedPlan>> published_plans(JsonObject file) {
  if (file.text("schema") != "forerun.published-runs/1") {
    file.fail("schema", "is not \"forerun.published-runs/1\"", "take data/scale/published_runs.json");
  }
  std::vector<PublishedPlan> plans;
  for (JsonObject& source : file.objects("sources")) {
    PublishedPlan common;
    common.source = source.text("source");
    const std::string half = source.text("half"), stack = source.text("stack");
    if (half != "look" && half != "judge") source.fail("half", "is neither look nor judge");
    if (stack != "pytorch" && stack != "megatron") source.fail("stack", "is neither pytorch nor megatron");
    common.judges = half == "judge";
    common.megatron = stack == "megatron";
    common.sure = !source.has("confidence") || source.text("confidence") != "less";
    common.plain_attention = source.has("attention") && source.text("attention") == "plain";
    const std::string flops = source.has("flops") ? source.text("flops") : "";
    for (JsonObject& row : source.objects("rows")) plans.push_back(read_plan(common, flops, row));
  }
  if (const Status status = file.status(); !status) return status.error();
  return plans;
}

Result<std::vector<PublishedPlan>> published_plans() {
  const auto data = data_dir();
  if (!data) return data.error();
  auto file = JsonObject::read(*data / "scale" / "published_runs.json");
  if (!file) return file.error();
  return published_plans(std::move(*file));
}

}  // namespace forerun::scale
