// forerun compare MODEL: one workload on many GPUs, side by side.
#include <fmt/format.h>

#include <algorithm>

#include "api/compare.h"
#include "api/predict.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "cli/job_options.h"
#include "cli/setup_options.h"
#include "report/compare.h"

namespace forerun::cli {
namespace {

struct CompareOptions {
  std::string model;
  std::vector<std::string> gpus = {"all"};
  std::vector<std::string> device_files;
  std::string machine;
  int64_t batch = 0;
  std::vector<std::string> settings;
  SetupOptions setup;
  PriceOptions prices;
  JobLength job;
  std::string by = "time";
  std::string deadline;
  double budget = 0;
  bool no_batch = false;
  unsigned threads = 0;
  std::string svg;
  WorkLimits limits;
  HtmlOption html;
  bool json = false;
  bool csv = false;
};

Result<CompareRequest> compare_request(const CompareOptions& options, const CostModels& cost_models) {
  CompareRequest request{.job = options.job,
                         .by = options.by == "cost" ? CompareBy::cost : CompareBy::time,
                         .largest_batch = !options.no_batch,
                         .threads = options.threads};
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
  auto prices = asked_prices(options.prices, cost_models.devices);
  if (!prices) return prices.error();
  request.prices = std::move(*prices);
  request.given = *parse_prices(options.prices.given, cost_models.devices);
  if (options.budget > 0) request.budget = options.budget;
  if (options.deadline.empty()) return request;
  const auto deadline = parse_deadline(options.deadline);
  if (!deadline) return deadline.error();
  request.deadline_hours = *deadline;
  return request;
}

int run_compare(const CompareOptions& options) {
  const Result<CostModels> cost_models = load_cost_models_for(options.machine, options.device_files);
  if (!cost_models) return fail(cost_models.error());
  const auto request = compare_request(options, *cost_models);
  if (!request) return fail(request.error());
  const auto answer = compare_gpus(*request, *cost_models, CommandWork(options.limits).control());
  if (!answer) return fail(answer.error());
  if (!options.svg.empty()) {
    if (const Status status = write_whole_file(options.svg, to_svg(*answer)); !status.ok()) return fail(status.error());
  }
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*answer)); !status.ok()) return fail(status.error());
  }
  if (const Error* same = answer->same_error(); same != nullptr && !options.json && !options.csv) return fail(*same);
  fmt::print("{}", options.json ? to_json(*answer) + "\n" : options.csv ? to_csv(*answer) : to_text(*answer));
  const auto& rows = answer->rows;
  if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.prediction.ok(); })) return kInputAtFault;
  return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.may_fit(); }) ? kDone : kDoesNotFit;
}

}  // namespace

void add_compare(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* verb = app.add_subcommand("compare", "GPUs side by side: time, memory and cost of a model on each");
  verb->add_option("MODEL", options->model,
                   "A name from `forerun zoo`, a Hugging Face config.json, an ONNX file or a captured run")
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
  add_compile_option(*verb, options->setup);
  add_job_options(*verb, options->job);
  add_price_options(*verb, options->prices);
  verb->add_option("--by", options->by,
                   "What comes first: time (default), the fastest; or cost, the cheapest by your prices")
      ->check(CLI::IsMember({"time", "cost"}));
  verb->add_option("--deadline", options->deadline, "The whole run is to end in this time, as 12h, 90min or 3d");
  verb->add_option("--budget", options->budget, "The whole run is to cost at most this, in the currency of your prices")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--no-largest-batch", options->no_batch, "Leave out how large a batch would fit, which takes longer");
  verb->add_option("--threads", options->threads, "How many at a time; default: as many as there are cores")
      ->check(CLI::Range(0, 1024));
  add_machine_option(*verb, options->machine);
  verb->add_option("--device-file", options->device_files, "JSON file with a further GPU; repeatable")
      ->allow_extra_args(false);
  verb->add_option("--svg", options->svg, "Draw the iteration times and their ranges");
  add_work_limits(*verb, options->limits);
  add_html_option(*verb, options->html);
  auto* json = verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->add_flag("--csv", options->csv, "One CSV row a GPU on standard output")->excludes(json);
  verb->footer(
      "Examples:\n"
      "  forerun compare resnet50 --batch 64\n"
      "  forerun compare gpt2_small --gpus a100_80gb,h100_sxm,h200 --precision amp_bf16 --batch 16\n"
      "  forerun compare bert_base --gpus a100,h100 --price a100=1.8,h100=2.9 --by cost\n"
      "  forerun compare resnet50 --epochs 90 --dataset-size 1.28M --prices examples/prices.toml\n"
      "  forerun compare Qwen/Qwen3-8B --lora 16 --tokens 100M --price h100=3,l40s=1 --deadline 12h\n"
      "  forerun compare capture.jsonl --gpus a100,h100,l40s\n"
      "GPUs that hold the run come first, the fastest or cheapest on top; * marks those that no other is both faster "
      "and\n"
      "cheaper than. Prices are yours, in any currency: Forerun knows none.\n"
      "Exit code 3: it fits on none of them; 1: it can be built for none of them.");
  verb->callback([options, &chosen] { chosen = [options] { return run_compare(*options); }; });
}

}  // namespace forerun::cli
