// forerun devices: the GPUs that can be predicted, and the links between them, with their figures.
#include <fmt/core.h>

#include "api/catalogue.h"
#include "cli/command.h"
#include "cli/html_option.h"
#include "report/catalogue.h"

namespace forerun::cli {
namespace {

struct DevicesOptions {
  std::vector<std::string> files;
  bool links = false;
  bool json = false;
  HtmlOption html;
};

int list_catalogue(const DevicesOptions& options) {
  const Result<CostModels> cost_models = load_cost_models(options.files);
  if (!cost_models) return fail(cost_models.error());
  const DeviceCatalogue& devices = cost_models->devices;
  const auto evidences = GpuEvidences::load(*cost_models);
  if (!evidences) return fail(evidences.error());
  const auto sources = load_link_sources(options.files);
  if (!sources) return fail(sources.error());
  std::string lines;
  if (options.links) {
    for (const Link& link : devices.links()) lines += to_json(link, *sources) + "\n";
  } else {
    for (const Device& device : devices.devices()) lines += to_json(device, evidences->of(device)) + "\n";
  }
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, lines); !status.ok()) return fail(status.error());
  }
  fmt::print("{}", options.json    ? lines
                   : options.links ? links_text(devices, *sources)
                                   : devices_text(devices, *evidences));
  return kDone;
}

}  // namespace

void add_devices(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<DevicesOptions>();
  CLI::App* verb =
      app.add_subcommand("devices", "The GPUs that predictions can be made for, and the links between them");
  verb->add_option("--device-file", options->files, "JSON file with a further GPU; repeatable")
      ->allow_extra_args(false);
  verb->add_flag("--links", options->links, "The links between GPUs and nodes, which --network and the like name");
  add_html_option(*verb, options->html);
  verb->add_flag("--json", options->json, "One JSON object a GPU (or link) on standard output");
  verb->callback([options, &chosen] { chosen = [options] { return list_catalogue(*options); }; });
}

}  // namespace forerun::cli
