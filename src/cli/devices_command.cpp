// forerun devices: the GPUs that can be predicted, and the links between them, with their figures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_writer.h"
#include "cli/command.h"
#include "predict/cost_models.h"
#include "report/table.h"

namespace forerun::cli {
namespace {

std::string tera(double rate) { return rate > 0 ? fmt::format("{:.1f}", rate / 1e12) : "-"; }

std::string device_json(const Device& d) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.devices/1")
      .field("name", d.name)
      .field("aliases", d.aliases)
      .field("architecture", d.architecture)
      .field("compute_capability", d.capability_text())
      .field("sm_count", d.sm_count)
      .field("clock_mhz", d.clock_mhz)
      .field("memory", d.memory.value)
      .field("memory_bandwidth", d.memory_bandwidth)
      .field("fp32", d.peak.fp32)
      .field("tf32_tensor", d.peak.tf32_tensor)
      .field("bf16_tensor", d.peak.bf16_tensor)
      .field("file", std::filesystem::path(d.file).filename().string());
  return json.end_object().take();
}

std::string link_json(const Link& link) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.devices.links/1")
      .field("name", link.name)
      .field("aliases", link.aliases)
      .field("bandwidth", link.bandwidth)
      .field("latency_us", microseconds(link.latency));
  return json.end_object().take();
}

int list_gpus(const std::vector<std::string>& files, bool json) {
  const Result<CostModels> cost_models = load_cost_models(files);
  if (!cost_models) return fail(cost_models.error());
  Table table({"GPU", "names", "CC", "SMs", "MHz", "GiB", "GB/s", "fp32", "tf32", "bf16"});
  table.align_left(1);
  for (const Device& d : cost_models->devices.devices()) {
    if (json) {
      fmt::print("{}\n", device_json(d));
      continue;
    }
    table.add({d.name, fmt::format("{}", fmt::join(d.aliases, ", ")),
               d.compute_capability > 0 ? d.capability_text() : "-", fmt::format("{}", d.sm_count),
               fmt::format("{:.0f}", d.clock_mhz), fmt::format("{:.0f}", gibibytes(d.memory)),
               fmt::format("{:.0f}", d.memory_bandwidth / 1e9), tera(d.peak.fp32), tera(d.peak.tf32_tensor),
               tera(d.peak.bf16_tensor)});
  }
  if (!json) {
    fmt::print(
        "{}\nCC: compute capability. Rates in TFLOP/s, dense. Sources: data/devices. Add a GPU with --device-file "
        "FILE.\n",
        table.text(""));
  }
  return kDone;
}

int list_links(const std::vector<std::string>& files, bool json) {
  const Result<CostModels> cost_models = load_cost_models(files);
  if (!cost_models) return fail(cost_models.error());
  Table table({"link", "names", "GB/s", "latency us"});
  table.align_left(1);
  for (const Link& link : cost_models->devices.links()) {
    if (json) {
      fmt::print("{}\n", link_json(link));
      continue;
    }
    table.add({link.name, fmt::format("{}", fmt::join(link.aliases, ", ")), fmt::format("{:g}", link.bandwidth / 1e9),
               fmt::format("{:g}", microseconds(link.latency))});
  }
  if (!json) {
    fmt::print("{}\nOne direction, before protocol overhead. Sources: data/devices/links.json.\n", table.text(""));
  }
  return kDone;
}

}  // namespace

void add_devices(CLI::App& app, Run& chosen) {
  struct Options {
    std::vector<std::string> files;
    bool links = false;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("devices", "The GPUs that predictions can be made for, and the links between them");
  verb->add_option("--device-file", options->files, "JSON file with a further GPU; repeatable")
      ->allow_extra_args(false);
  verb->add_flag("--links", options->links, "The links between GPUs and nodes, which --network and the like name");
  verb->add_flag("--json", options->json, "One JSON object a GPU (or link) on standard output");
  verb->callback([options, &chosen] {
    chosen = [options] {
      return options->links ? list_links(options->files, options->json) : list_gpus(options->files, options->json);
    };
  });
}

}  // namespace forerun::cli
