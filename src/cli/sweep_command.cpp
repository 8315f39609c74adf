// forerun sweep MODEL --over NAME=VALUES: many configurations at once, and the best of them.
#include <fmt/core.h>

#include "api/sweep.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/job_options.h"
#include "cli/setup_options.h"
#include "report/prediction.h"
#include "report/sweep.h"

namespace forerun::cli {
namespace {

struct SweepOptions {
  std::string model;
  std::string gpu;
  std::vector<std::string> over;
  std::vector<std::string> settings;
  SetupOptions setup;
  JobLength job;
  PriceOptions prices;
  unsigned threads = 0;
  WorkLimits limits;
  bool json = false;
  bool csv = false;
};

// What options beside --set and --over say.
Settings given_by_option(const SweepOptions& options) {
  Settings given;
  if (!options.model.empty()) given.emplace_back("model", "the model's name");
  if (!options.gpu.empty()) given.emplace_back("gpu", "--gpu");
  if (!options.setup.precision.empty()) given.emplace_back("precision", "--precision");
  if (!options.setup.optimizer.empty()) given.emplace_back("optimizer", "--optimizer");
  if (!options.setup.checkpoint.empty()) given.emplace_back("checkpoint", "--checkpoint");
  if (!options.setup.lora.empty()) given.emplace_back("lora", "--lora");
  if (!options.setup.quantize.empty()) given.emplace_back("quantize", "--quantize");
  if (options.setup.accumulate != 1) given.emplace_back("accumulate", "--accumulate");
  if (options.setup.channels_last) given.emplace_back("channels_last", "--channels-last");
  return given;
}

// The names that options and axes give a value to, which --set may not give again.
Settings taken_by(const SweepOptions& options, const std::vector<SweepAxis>& axes) {
  Settings taken = given_by_option(options);
  for (const SweepAxis& axis : axes) taken.emplace_back(axis.name, "--over " + axis.name);
  return taken;
}

// An axis that stands twice, or beside an option that gives the same, is an Error.
Status check_axes(const SweepOptions& options, const std::vector<SweepAxis>& axes) {
  Settings taken = given_by_option(options);
  for (const SweepAxis& axis : axes) {
    for (const auto& [name, giver] : taken) {
      if (name != axis.name) continue;
      return Error{fmt::format("{} is given by {} and by --over {}", name, giver, axis.name), "--over",
                   "give it in one of them"};
    }
    taken.emplace_back(axis.name, "--over " + axis.name);
  }
  return {};
}

Result<SweepRequest> sweep_request(const SweepOptions& options, const DeviceCatalogue& devices) {
  SweepRequest request{.gpu = options.gpu};
  request.job = options.job;
  Result<Prices> prices = asked_prices(options.prices, devices);
  if (!prices) return prices.error();
  request.prices = std::move(*prices);
  for (const std::string& text : options.over) {
    Result<SweepAxis> axis = parse_axis(text);
    if (!axis) return axis.error();
    request.axes.push_back(std::move(*axis));
  }
  if (const Status status = check_axes(options, request.axes); !status.ok()) return status.error();
  Result<Settings> settings = parse_settings(options.settings, taken_by(options, request.axes));
  if (!settings) return settings.error();
  request.fixed = std::move(*settings);
  const Result<TrainingSetup> setup = parse_setup(options.setup);
  if (!setup) return setup.error();
  request.base.model = options.model;
  request.base.setup = *setup;
  request.base.default_optimizer = options.setup.optimizer.empty();
  return request;
}

int run(const SweepOptions& options) {
  const Result<CostModels> cost_models = load_cost_models();
  if (!cost_models) return fail(cost_models.error());
  const Result<SweepRequest> request = sweep_request(options, cost_models->devices);
  if (!request) return fail(request.error());
  const Result<std::vector<SweepCase>> cases = sweep_cases(*request, *cost_models);
  if (!cases) return fail(cases.error());
  std::vector<std::string> names;
  for (const SweepAxis& axis : request->axes) names.push_back(axis.name);
  std::vector<SweepRow> rows;
  size_t bad = 0;
  if (options.csv) fmt::print("{}", sweep_csv_header(names, request->job.any()));
  const auto take = [&](const SweepCase& one, const Result<Prediction>& prediction) {
    if (!prediction) ++bad;
    if (options.json) {
      fmt::print("{}\n", sweep_json(names, one.values, prediction));
    } else if (options.csv && prediction) {
      fmt::print("{}", sweep_csv(names, one.values, *prediction));
    } else if (options.csv) {
      fmt::print(stderr, "forerun: {}\n", prediction.error().message());
    } else {
      rows.push_back({one.values, prediction});
    }
  };
  const auto printing =
      options.json || options.csv ? CommandWork::Answer::as_it_comes : CommandWork::Answer::when_whole;
  const Status status =
      sweep(*cases, *cost_models, options.threads, take, CommandWork(options.limits, printing).control());
  if (!status.ok()) return fail(status.error());
  if (!options.json && !options.csv) fmt::print("{}", sweep_text(names, rows));
  return bad == cases->size() ? kInputAtFault : kDone;
}

}  // namespace

void add_sweep(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* verb = app.add_subcommand("sweep", "Many configurations of a model at once, and the fastest that fits");
  verb->add_option("MODEL", options->model,
                   "A name from `forerun zoo`, a Hugging Face config.json, an ONNX file, or a capture made with "
                   "--batch-sizes; not with "
                   "--over model=A,B");
  verb->add_option("--over", options->over,
                   "NAME=VALUES to go through; repeatable (all combinations). NAME: model, gpu, batch, precision, "
                   "optimizer, checkpoint, accumulate, lora, quantize, channels_last, or a parameter of the model. "
                   "VALUES: a,b,c "
                   "or 8..256*2 or 1..9+2")
      ->required()
      ->allow_extra_args(false);
  verb->add_option("--gpu", options->gpu, "GPU by name (`forerun devices` lists them); default h200");
  verb->add_option("--set", options->settings, "KEY=VALUE that stays the same; repeatable")->allow_extra_args(false);
  add_setup_options(*verb, options->setup);
  add_job_options(*verb, options->job);
  add_price_options(*verb, options->prices);
  verb->add_option("--threads", options->threads, "How many at a time; default: as many as there are cores")
      ->check(CLI::Range(0, 1024));
  add_work_limits(*verb, options->limits);
  auto* json = verb->add_flag("--json", options->json, "One JSON object a configuration on standard output");
  verb->add_flag("--csv", options->csv, "One CSV row a configuration on standard output")->excludes(json);
  verb->footer(
      "Examples:\n"
      "  forerun sweep resnet50 --over batch=8..512*2 --over precision=fp32,amp_bf16\n"
      "  forerun sweep vit_b_16 --over gpu=a100_80gb,h100_sxm,h200 --over image=224,384 --set batch=64\n"
      "  forerun sweep gpt2_small --over seq=256..1024*2 --over optimizer=adamw,sgd --csv > sweep.csv\n"
      "  forerun sweep --over model=resnet50,vit_b_16,swin_t --over batch=32,64\n"
      "  forerun sweep Qwen/Qwen3-8B --lora 16 --over quantize=none,nf4,int8 --tokens 100M --price h200=3\n"
      "A configuration fits, may not fit (the range of such runs crosses the GPU's memory) or does not fit.\n"
      "Exit code 1: none of the configurations could be built.");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace forerun::cli
