// forerun fit MODEL: the largest batch, image or sequence that a GPU has memory for.
#include <fmt/core.h>

#include "api/fit.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "cli/job_options.h"
#include "cli/memory_options.h"
#include "cli/setup_options.h"
#include "cli/standard_streams.h"
#include "report/fit.h"

namespace forerun::cli {
namespace {

struct FitOptions {
  std::string model;
  std::string gpu;
  std::vector<std::string> device_files;
  std::string machine;
  std::string axis = "batch";
  std::string reserve = "0%";
  std::string margin = "range";
  int64_t batch = 0;
  std::vector<std::string> settings;
  SetupOptions setup;
  MemoryOptions memory;
  JobLength job;
  PriceOptions prices;
  WorkLimits limits;
  HtmlOption html;
  bool brief = false;
  bool details = false;
  bool json = false;
};

Result<FitRequest> request_of(const FitOptions& options) {
  FitRequest request;
  request.model.model = options.model;
  request.axis = options.axis;
  request.changes = !options.brief;
  request.job = options.job;
  if (const Status status = parse_reserve(options.reserve, request); !status.ok()) return status.error();
  if (options.batch > 0 && options.axis == "batch") {
    return Error{"the batch is what is looked for", "--batch", "leave it out, or look along another --axis"};
  }
  if (options.batch > 0) request.model.batch = options.batch;
  Settings taken = {{options.axis, "--axis"}};
  if (options.axis == "seq") taken.emplace_back("length", "--axis seq");
  if (options.batch > 0) taken.emplace_back("batch", "--batch");
  Result<Settings> settings = parse_settings(options.settings, taken);
  if (!settings) return settings.error();
  request.model.settings = std::move(*settings);
  const Result<TrainingSetup> setup = parse_setup(options.setup);
  if (!setup) return setup.error();
  request.model.setup = *setup;
  request.model.default_optimizer = options.setup.optimizer.empty();
  Result<MemoryQuestion> memory = parse_memory(options.memory);
  if (!memory) return memory.error();
  request.memory = std::move(*memory);
  if (const Status status = parse_margin(options.margin, request); !status.ok()) return status.error();
  return request;
}

int run(const FitOptions& options) {
  Result<FitRequest> request = request_of(options);
  if (!request) return fail(request.error());
  const Result<CostModels> cost_models = load_cost_models_for(options.machine, options.device_files);
  if (!cost_models) return fail(cost_models.error());
  Result<Prices> prices = asked_prices(options.prices, cost_models->devices);
  if (!prices) return fail(prices.error());
  request->prices = std::move(*prices);
  const Result<Device> device = asked_gpu(options.gpu, *cost_models);
  if (!device) return fail(device.error());
  const Result<FitAnswer> answer = fit(*request, *device, *cost_models, CommandWork(options.limits).control());
  if (!answer) return fail(answer.error());
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*answer)); !status.ok()) return fail(status.error());
  }
  fmt::print("{}{}", options.json ? to_json(*answer) : to_text(*answer, text_style(options.details)),
             options.json ? "\n" : "");
  return answer->largest ? kDone : kDoesNotFit;
}

}  // namespace

void add_fit(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<FitOptions>();
  CLI::App* verb = app.add_subcommand("fit", "The largest batch, image or sequence that a GPU has memory for");
  verb->add_option(
          "MODEL", options->model,
          "A name from `forerun zoo`, a Hugging Face config.json, an ONNX file, or a capture made with --batch-sizes")
      ->required();
  verb->add_option("--gpu,--device", options->gpu, "GPU by name (`forerun devices` lists them); default h200");
  verb->add_option("--axis", options->axis,
                   "What to enlarge: batch (default), seq, image, or any whole-number setting of the model");
  verb->add_option("--margin", options->margin,
                   "How far a run may be above its prediction and must still fit: range (default: the upper end of the "
                   "range that held 8 of 10 measured runs), none (the expected value fits) or a share (5%)");
  verb->add_option("--reserve", options->reserve,
                   "Memory to keep free for others, as a share or a size (5%, 2GiB); default none");
  verb->add_option("--batch", options->batch, "Samples an iteration, where another axis is looked along")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  verb->add_option("--set", options->settings, "KEY=VALUE of the model's family; repeatable")->allow_extra_args(false);
  add_setup_options(*verb, options->setup);
  add_compile_option(*verb, options->setup);
  add_memory_options(*verb, options->memory);
  add_job_options(*verb, options->job);
  add_price_options(*verb, options->prices);
  verb->add_flag("--details", options->details, "Also what lives at the peak of memory, part by part");
  verb->add_flag("--brief", options->brief, "Without what would let a larger one in");
  add_machine_option(*verb, options->machine);
  verb->add_option("--device-file", options->device_files, "JSON file with a further GPU; repeatable")
      ->allow_extra_args(false);
  add_work_limits(*verb, options->limits);
  add_html_option(*verb, options->html);
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->footer(
      "Examples:\n"
      "  forerun fit resnet50                               largest batch on an H200\n"
      "  forerun fit gpt2_small --gpu a100_80gb --axis seq --batch 4 --precision amp_bf16\n"
      "  forerun fit resnet50 --epochs 90 --dataset-size 1.28M --price h200=3.5   with that batch: hours, kWh, money\n"
      "  forerun fit llama2_7b --zero 3 --gpus 8 --precision amp_bf16\n"
      "  forerun fit resnet50 --margin none                 where the expected value is to fit, and half of all runs "
      "may not\n"
      "Exit code 3: not even the smallest surely fits.");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace forerun::cli
