// forerun devices: the GPUs that can be predicted, and the links between them, with their figures.
#include <fmt/core.h>

#include "api/catalogue.h"
#include "cli/command.h"
#include "report/catalogue.h"

namespace forerun::cli {
namespace {

int list_catalogue(const std::vector<std::string>& files, bool links, bool json) {
  const Result<CostModels> cost_models = load_cost_models(files);
  if (!cost_models) return fail(cost_models.error());
  const DeviceCatalogue& devices = cost_models->devices;
  const auto evidences = GpuEvidences::load(*cost_models);
  if (!evidences) return fail(evidences.error());
  if (!json) {
    fmt::print("{}", links ? links_text(devices) : devices_text(devices, *evidences));
  } else if (links) {
    for (const Link& link : devices.links()) fmt::print("{}\n", to_json(link));
  } else {
    for (const Device& device : devices.devices()) fmt::print("{}\n", to_json(device, evidences->of(device)));
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
    chosen = [options] { return list_catalogue(options->files, options->links, options->json); };
  });
}

}  // namespace forerun::cli
