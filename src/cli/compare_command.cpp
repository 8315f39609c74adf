// forerun compare MODEL: one workload on many GPUs, side by side.
#include <fmt/format.h>

#include <algorithm>

#include "api/compare.h"
#include "api/predict.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/setup_options.h"
#include "report/compare.h"

namespace forerun::cli {
namespace {

struct CompareOptions {
  std::string model;
  std::vector<std::string> gpus = {"all"};
  std::vector<std::string> device_files;
  int64_t batch = 0;
  std::vector<std::string> settings;
  SetupOptions setup;
  std::vector<std::string> prices;
  int64_t iterations = 0;
  unsigned threads = 0;
  std::string svg;
  WorkLimits limits;
  bool json = false;
  bool csv = false;
};

Result<CompareRequest> compare_request(const CompareOptions& options, const CostModels& cost_models) {
  CompareRequest request{.iterations = options.iterations, .threads = options.threads};
  const auto file = model_file(options.model, "compare");
  if (!file) return file.error();
  request.model.model = options.model;
  request.model.file = *file;
  if (options.batch > 0) request.model.batch = options.batch;
  Result<Settings> settings =
      parse_settings(options.settings, options.batch > 0 ? Settings{{"batch", "--batch"}} : Settings{});
  if (!settings) return settings.error();
  request.model.settings = std::move(*settings);
  const Result<TrainingSetup> setup = parse_setup(options.setup);
  if (!setup) return setup.error();
  request.model.setup = *setup;
  request.model.default_optimizer = options.setup.optimizer.empty();
  if (options.gpus != std::vector<std::string>{"all"}) request.gpus = options.gpus;
  auto prices = parse_prices(options.prices, cost_models.devices);
  if (!prices) return prices.error();
  request.prices = std::move(*prices);
  return request;
}

int run_compare(const CompareOptions& options) {
  const Result<CostModels> cost_models = load_cost_models(options.device_files);
  if (!cost_models) return fail(cost_models.error());
  const auto request = compare_request(options, *cost_models);
  if (!request) return fail(request.error());
  const auto answer = compare_gpus(*request, *cost_models, CommandWork(options.limits).control());
  if (!answer) return fail(answer.error());
  if (!options.svg.empty()) {
    if (const Status status = write_whole_file(options.svg, to_svg(*answer)); !status.ok()) return fail(status.error());
  }
  fmt::print("{}", options.json ? to_json(*answer) + "\n" : options.csv ? to_csv(*answer) : to_text(*answer));
  const auto& rows = answer->rows;
  if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.prediction.ok(); })) return kInputAtFault;
  return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.may_fit(); }) ? kDone : kDoesNotFit;
}

}  // namespace

void add_compare(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* verb = app.add_subcommand("compare", "GPUs side by side: time, memory and cost of a model on each");
  verb->add_option("MODEL", options->model, "A name from `forerun zoo`, a Hugging Face config.json or an ONNX file")
      ->required();
  verb->add_option("--gpus,--gpu", options->gpus,
                   "Which: names of `forerun devices`, as a100_80gb,h200, or all (default)")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--batch", options->batch, "Samples an iteration")->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  verb->add_option("--set", options->settings,
                   "KEY=VALUE of the model's family, or of a dynamic ONNX dimension; repeatable")
      ->allow_extra_args(false);
  add_setup_options(*verb, options->setup);
  verb->add_option("--price", options->prices, "GPU=PRICE of one GPU an hour, as h100=2.5,a100=1.2; repeatable")
      ->allow_extra_args(false);
  verb->add_option("--iterations", options->iterations, "Of the whole run: adds its hours and its cost")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 50));
  verb->add_option("--threads", options->threads, "How many at a time; default: as many as there are cores")
      ->check(CLI::Range(0, 1024));
  verb->add_option("--device-file", options->device_files, "JSON file with a further GPU; repeatable")
      ->allow_extra_args(false);
  verb->add_option("--svg", options->svg, "Draw the iteration times and their ranges");
  add_work_limits(*verb, options->limits);
  auto* json = verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->add_flag("--csv", options->csv, "One CSV row a GPU on standard output")->excludes(json);
  verb->footer(
      "Examples:\n"
      "  forerun compare resnet50 --batch 64\n"
      "  forerun compare gpt2_small --gpus a100_80gb,h100_sxm,h200 --precision amp_bf16 --batch 16\n"
      "  forerun compare bert_base --gpus a100,h100 --price a100=1.8,h100=2.9 --iterations 100000\n"
      "GPUs that hold the run come first, the fastest on top; speed is against that one.\n"
      "Prices are yours, in any currency: Forerun knows none.\n"
      "Exit code 3: it fits on none of them; 1: it can be built for none of them.");
  verb->callback([options, &chosen] { chosen = [options] { return run_compare(*options); }; });
}

}  // namespace forerun::cli
