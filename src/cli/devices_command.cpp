// forerun devices: the GPUs that can be predicted, with their figures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "predict/cost_models.h"
#include "report/table.h"

namespace forerun::cli {
namespace {

std::string tera(double rate) { return rate > 0 ? fmt::format("{:.1f}", rate / 1e12) : "-"; }

int list(const std::vector<std::string>& files, bool json) {
  const Result<CostModels> cost_models = load_cost_models(files);
  if (!cost_models) return fail(cost_models.error());
  Table table({"GPU", "names", "SMs", "MHz", "GiB", "GB/s", "fp32", "tf32", "bf16"});
  table.align_left(1);
  for (const Device& d : cost_models->devices.devices()) {
    if (json) {
      const nlohmann::ordered_json row = {{"name", d.name},
                                          {"aliases", d.aliases},
                                          {"sm_count", d.sm_count},
                                          {"clock_mhz", d.clock_mhz},
                                          {"memory", d.memory.value},
                                          {"memory_bandwidth", d.memory_bandwidth},
                                          {"fp32", d.peak.fp32},
                                          {"tf32_tensor", d.peak.tf32_tensor},
                                          {"bf16_tensor", d.peak.bf16_tensor},
                                          {"file", std::filesystem::path(d.file).filename().string()}};
      fmt::print("{}\n", row.dump());
      continue;
    }
    table.add({d.name, fmt::format("{}", fmt::join(d.aliases, ", ")), fmt::format("{}", d.sm_count),
               fmt::format("{:.0f}", d.clock_mhz), fmt::format("{:.0f}", gibibytes(d.memory)),
               fmt::format("{:.0f}", d.memory_bandwidth / 1e9), tera(d.peak.fp32), tera(d.peak.tf32_tensor),
               tera(d.peak.bf16_tensor)});
  }
  if (!json) {
    fmt::print("{}\nRates in TFLOP/s, dense. Sources: data/devices. Add a GPU with --device-file FILE.\n",
               table.text(""));
  }
  return kDone;
}

}  // namespace

void add_devices(CLI::App& app, Run& chosen) {
  struct Options {
    std::vector<std::string> files;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("devices", "The GPUs that predictions can be made for");
  verb->add_option("--device-file", options->files, "JSON file with a further GPU; repeatable")
      ->allow_extra_args(false);
  verb->add_flag("--json", options->json, "One JSON object a GPU on standard output");
  verb->callback([options, &chosen] { chosen = [options] { return list(options->files, options->json); }; });
}

}  // namespace forerun::cli
