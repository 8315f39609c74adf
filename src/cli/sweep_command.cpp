// forerun sweep MODEL --over NAME=VALUES: many configurations at once, and the best of them.
#include <fmt/core.h>
#include <unistd.h>

#include "api/sweep.h"
#include "cli/command.h"
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
  unsigned threads = 0;
  bool json = false;
  bool csv = false;
};

// Where an axis goes: into what is asked for, beside the parameters of the model's family.
struct Question {
  std::string model;
  std::string gpu;
  std::string batch;
  std::string channels_last;
  SetupOptions setup;
  std::vector<std::pair<std::string, std::string>> settings;

  void set(const std::string& name, const std::string& value) {
    if (name == "model") {
      model = value;
    } else if (name == "gpu") {
      gpu = value;
    } else if (name == "batch") {
      batch = value;
    } else if (name == "precision") {
      setup.precision = value;
    } else if (name == "optimizer") {
      setup.optimizer = value;
    } else if (name == "channels_last") {
      channels_last = value;
    } else {
      settings.emplace_back(name, value);
    }
  }
};

// What options beside --set and --over say.
Settings given_by_option(const SweepOptions& options) {
  Settings given;
  if (!options.model.empty()) given.emplace_back("model", "the model's name");
  if (!options.gpu.empty()) given.emplace_back("gpu", "--gpu");
  if (!options.setup.precision.empty()) given.emplace_back("precision", "--precision");
  if (!options.setup.optimizer.empty()) given.emplace_back("optimizer", "--optimizer");
  if (options.setup.channels_last) given.emplace_back("channels_last", "--channels-last");
  return given;
}

Result<SweepCase> case_of(const Question& question, std::vector<std::string> values, const CostModels& cost_models) {
  const Result<Device> device = cost_models.devices.find(question.gpu.empty() ? kDefaultGpu : question.gpu);
  if (!device) return device.error();
  SetupOptions options = question.setup;
  if (!question.channels_last.empty()) {
    options.channels_last = question.channels_last == "true";
    if (!options.channels_last && question.channels_last != "false") {
      return Error{fmt::format("channels_last cannot be '{}'", question.channels_last), "--over", "give true or false"};
    }
  }
  const Result<TrainingSetup> setup = parse_setup(options);
  if (!setup) return setup.error();
  if (question.model.empty()) return Error{"there is no model", "", "name one, or several with --over model=A,B"};
  SweepCase found{std::move(values), {}, *device};
  found.request.model = question.model;
  found.request.settings = question.settings;
  found.request.setup = *setup;
  found.request.default_optimizer = question.setup.optimizer.empty();
  if (!question.batch.empty()) {
    char* end = nullptr;
    const int64_t batch = std::strtoll(question.batch.c_str(), &end, 10);
    if (*end != '\0' || batch < 1) {
      return Error{fmt::format("batch cannot be '{}'", question.batch), "--over", "give whole numbers from 1"};
    }
    found.request.batch = batch;
  }
  return found;
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

Result<std::vector<SweepCase>> cases_of(const SweepOptions& options, const std::vector<SweepAxis>& axes,
                                        const CostModels& cost_models) {
  Question fixed{options.model, options.gpu, "", "", options.setup, {}};
  const Result<Settings> settings = parse_settings(options.settings, taken_by(options, axes));
  if (!settings) return settings.error();
  for (const auto& [key, value] : *settings) fixed.set(key, value);
  const auto product = product_of(axes);
  if (!product) return product.error();
  std::vector<SweepCase> cases;
  for (const std::vector<std::string>& values : *product) {
    Question question = fixed;
    for (size_t i = 0; i < axes.size(); ++i) question.set(axes[i].name, values[i]);
    Result<SweepCase> one = case_of(question, values, cost_models);
    if (!one) return one.error();
    cases.push_back(std::move(*one));
  }
  return cases;
}

int run(const SweepOptions& options) {
  const Result<CostModels> cost_models = load_cost_models();
  if (!cost_models) return fail(cost_models.error());
  std::vector<SweepAxis> axes;
  std::vector<std::string> names;
  for (const std::string& text : options.over) {
    Result<SweepAxis> axis = parse_axis(text);
    if (!axis) return fail(axis.error());
    names.push_back(axis->name);
    axes.push_back(std::move(*axis));
  }
  if (const Status status = check_axes(options, axes); !status.ok()) return fail(status.error());
  const Result<std::vector<SweepCase>> cases = cases_of(options, axes, *cost_models);
  if (!cases) return fail(cases.error());
  const bool progress = isatty(fileno(stderr)) != 0 && cases->size() > 100;
  std::vector<SweepRow> rows;
  size_t done = 0, bad = 0;
  if (options.csv) fmt::print("{}", sweep_csv_header(names));
  sweep(*cases, *cost_models, options.threads, [&](const SweepCase& one, const Result<Prediction>& prediction) {
    ++done;
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
    if (progress && done % 50 == 0) fmt::print(stderr, "\r{} of {}", done, cases->size());
  });
  if (progress) fmt::print(stderr, "\r");
  if (!options.json && !options.csv) fmt::print("{}", sweep_text(names, rows));
  return bad == cases->size() ? kInputAtFault : kDone;
}

}  // namespace

void add_sweep(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* verb = app.add_subcommand("sweep", "Many configurations of a model at once, and the fastest that fits");
  verb->add_option("MODEL", options->model, "A name from `forerun zoo`, or an ONNX file; not with --over model=A,B");
  verb->add_option("--over", options->over,
                   "NAME=VALUES to go through; repeatable (all combinations). NAME: model, gpu, batch, precision, "
                   "optimizer, channels_last, or a parameter of the model. VALUES: a,b,c or 8..256*2 or 1..9+2")
      ->required()
      ->allow_extra_args(false);
  verb->add_option("--gpu", options->gpu, "GPU by name (`forerun devices` lists them); default h200");
  verb->add_option("--set", options->settings, "KEY=VALUE that stays the same; repeatable")->allow_extra_args(false);
  add_setup_options(*verb, options->setup);
  verb->add_option("--threads", options->threads, "How many at a time; default: as many as there are cores");
  auto* json = verb->add_flag("--json", options->json, "One JSON object a configuration on standard output");
  verb->add_flag("--csv", options->csv, "One CSV row a configuration on standard output")->excludes(json);
  verb->footer(
      "Examples:\n"
      "  forerun sweep resnet50 --over batch=8..512*2 --over precision=fp32,amp_bf16\n"
      "  forerun sweep vit_b_16 --over gpu=a100_80gb,h100_sxm,h200 --over image=224,384 --set batch=64\n"
      "  forerun sweep gpt2_small --over seq=256..1024*2 --over optimizer=adamw,adamw:impl=fused --csv > sweep.csv\n"
      "  forerun sweep --over model=resnet50,vit_b_16,swin_t --over batch=32,64\n"
      "A configuration fits, may not fit (the range of such runs crosses the GPU's memory) or does not fit.\n"
      "Exit code 1: none of the configurations could be built.");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace forerun::cli
