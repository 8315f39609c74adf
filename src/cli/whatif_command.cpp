// forerun whatif: what an optimization would bring to a traced iteration, or to a model that has not run yet.
#include <fmt/format.h>

#include "api/predict.h"
#include "api/trace.h"
#include "api/whatif.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "cli/setup_options.h"
#include "report/whatif.h"
#include "report/whatif_sweep.h"

namespace forerun::cli {
namespace {

struct WhatIfOptions {
  std::string machine;
  std::string path;
  WhatIfQuestion question;
  std::vector<std::string> applications;
  std::vector<std::string> settings;
  SetupOptions setup;
  WorkLimits limits;
  HtmlOption html;
  std::string sweep;
  std::string svg;
  bool each = false;
  bool csv = false;
  bool all = false;
  bool profiled = false;
  bool unprofiled = false;
  bool json = false;
};

int print_ranking(const Result<std::vector<WhatIfAnswer>>& ranking, const WhatIfOptions& options) {
  if (!ranking) return fail(ranking.error());
  if (options.html.asked()) {
    std::string page;
    for (const WhatIfAnswer& answer : *ranking) page += to_json(answer) + "\n";
    if (const Status status = write_html(options.html, page); !status.ok()) return fail(status.error());
  }
  if (options.json) {
    for (const WhatIfAnswer& answer : *ranking) fmt::print("{}\n", to_json(answer));
  } else {
    fmt::print("{}", to_text(*ranking));
  }
  return kDone;
}

int print_answer(const Result<WhatIfAnswer>& answer, const WhatIfOptions& options) {
  if (!answer) return fail(answer.error());
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*answer)); !status.ok()) return fail(status.error());
  }
  fmt::print("{}", options.json ? to_json(*answer) + "\n" : to_text(*answer));
  return kDone;
}

int print_sweep(const Result<WhatIfSweepAnswer>& answer, const WhatIfOptions& options) {
  if (!answer) return fail(answer.error());
  if (!options.svg.empty()) {
    if (const Status status = write_whole_file(options.svg, to_svg(*answer)); !status.ok()) return fail(status.error());
  }
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*answer)); !status.ok()) return fail(status.error());
  }
  fmt::print("{}", options.json ? to_json(*answer) + "\n" : options.csv ? to_csv(*answer) : to_text(*answer));
  return kDone;
}

Result<WhatIfSweep> sweep_of(const WhatIfOptions& options) {
  auto sweep = parse_what_if_sweep(options.sweep);
  if (sweep) sweep->each = options.each;
  return sweep;
}

Result<ModelRequest> model_request(const WhatIfOptions& options, std::optional<FileKind> file) {
  ModelRequest request;
  request.model = options.path;
  request.file = file;
  const Result<Settings> settings = parse_settings(options.settings);
  if (!settings) return settings.error();
  for (const auto& [key, value] : *settings) {
    if (key == "batch") {
      char* end = nullptr;
      const int64_t batch = std::strtoll(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0' || batch < 1 || batch > (int64_t{1} << 30)) {
        return Error{"a batch cannot be '" + value + "'", "--set batch", "give a whole number from 1"};
      }
      request.batch = batch;
    } else {
      request.settings.emplace_back(key, value);
    }
  }
  const auto setup = parse_setup(options.setup);
  if (!setup) return setup.error();
  request.setup = *setup;
  request.default_optimizer = options.setup.optimizer.empty();
  return request;
}

int what_if_model(const WhatIfOptions& options, const ModelRequest& request, const CostModels& cost_models) {
  if (!options.sweep.empty()) {
    const auto sweep = sweep_of(options);
    if (!sweep) return fail(sweep.error());
    const auto answer =
        sweep_what_ifs(request, options.question, *sweep, cost_models, CommandWork(options.limits).control());
    return print_sweep(answer, options);
  }
  if (!options.all) {
    const auto answer = what_if(request, options.question, cost_models, CommandWork(options.limits).control());
    return print_answer(answer, options);
  }
  const auto ranking = rank_what_ifs(request, options.question, cost_models, CommandWork(options.limits).control());
  return print_ranking(ranking, options);
}

int what_if_traced(const WhatIfOptions& options, const CostModels& cost_models) {
  const auto sweep = options.sweep.empty() ? WhatIfSweep() : sweep_of(options);
  if (!sweep) return fail(sweep.error());
  auto work = std::make_unique<CommandWork>(options.limits);
  const auto trace = read_profiler_trace(options.path, "whatif", work->control());
  if (!trace) return fail(trace.error());
  if (!options.sweep.empty()) {
    const auto answer = sweep_what_ifs(*trace, options.question, *sweep, cost_models, work->control());
    work.reset();
    return print_sweep(answer, options);
  }
  if (options.all) {
    const auto ranking = rank_what_ifs(*trace, options.question, cost_models, work->control());
    work.reset();
    return print_ranking(ranking, options);
  }
  const auto answer = what_if(*trace, options.question, cost_models, work->control());
  work.reset();
  return print_answer(answer, options);
}

int what_if_command(const WhatIfOptions& given) {
  WhatIfOptions options = given;
  options.question.unprofiled = !options.profiled;
  if (!options.all && options.applications.empty()) {
    fmt::print(stderr, "forerun: give --apply NAME or --all; see `forerun whatif --help`\n");
    return kUsage;
  }
  auto applications = whatif::parse_applications(options.applications);
  if (!applications) return fail(applications.error());
  options.question.applications = std::move(*applications);
  const auto cost_models = load_cost_models_for(options.machine);
  if (!cost_models) return fail(cost_models.error());
  const auto file = model_file(options.path, "whatif");
  if (!file) return fail(file.error());
  if (!file->has_value() || *file == FileKind::onnx_model || *file == FileKind::model_config ||
      *file == FileKind::records) {
    const auto request = model_request(options, *file);
    if (!request) return fail(request.error());
    return what_if_model(options, *request, *cost_models);
  }
  if (options.setup.any() || !options.settings.empty()) {
    fmt::print(
        stderr,
        "forerun: a trace is taken as it was recorded: --set, --precision and what else says how a model is trained "
        "go with models; --apply changes a trace\n");
    return kUsage;
  }
  return what_if_traced(options, *cost_models);
}

std::string whatif_footer() {
  std::string text =
      "Changes the iteration's dependency graph and simulates it: before and after, with a range that eight of ten\n"
      "measurements should lie in, and what was assumed. Times are without the profiler (--profiled: as traced).\n"
      "  forerun whatif trace.json.gz --apply amp --apply fused_adam\n"
      "  forerun whatif trace.json.gz --apply batch:factor=2 --json\n"
      "  forerun whatif trace.json.gz --apply gpu:name=a100_80gb\n"
      "  forerun whatif trace.json.gz --all                       all of them, the largest gain first\n"
      "  forerun whatif resnet50 --set batch=64 --apply amp       a model of `forerun zoo`, an ONNX file\n"
      "  forerun whatif model.jsonl --apply cuda_graphs           or a capture\n"
      "  forerun whatif trace.json.gz --apply ddp:network=10gbe --sweep workers=2,4,8,16\n"
      "  forerun whatif trace.json.gz --apply wfbp --apply p3 --each --sweep bandwidth=1gbe,10gbe\n"
      "Optimizations, with their parameters:\n";
  for (const whatif::Optimization& optimization : whatif::optimizations()) {
    std::string name(optimization.name);
    for (size_t i = 0; i < optimization.parameters.size(); ++i) {
      name += (i == 0 ? ":" : ",") + std::string(optimization.parameters[i]);
    }
    text += fmt::format("  {}\n      {}\n", name, optimization.summary);
  }
  return text +
         "Profile with record_shapes=True: the forward pass is rebuilt from it, and kernel-time ratios are those of "
         "the\n"
         "cost model for each op's shape. docs/whatif.md says what each one assumes and how to add one.";
}

}  // namespace

void add_whatif(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<WhatIfOptions>();
  CLI::App* verb = app.add_subcommand("whatif", "What an optimization would bring to a traced or predicted iteration");
  verb->add_option(
          "TRACE", options->path,
          "A Kineto trace (.json, .gz, .zst), or a model: a name from `forerun zoo`, a config.json, an ONNX file")
      ->required();
  verb->add_option("--apply", options->applications, "NAME[:key=value,...]; several are applied in order")
      ->allow_extra_args(false);
  auto* all = verb->add_flag("--all", options->all,
                             "Every optimization alone (behind --apply, if given), the largest gain first");
  auto* sweep = verb->add_option("--sweep", options->sweep,
                                 "PARAMETER=VALUE,VALUE,...: once for each value of what an optimization takes, as "
                                 "bandwidth=1gbe,10gbe or workers=2,4,8")
                    ->excludes(all);
  verb->add_flag("--each", options->each, "With --sweep: every --apply by itself, side by side")->needs(sweep);
  verb->add_option("--svg", options->svg, "With --sweep: draw the iteration times")->needs(sweep);
  auto* profiled =
      verb->add_flag("--profiled", options->profiled, "Leave what the profiler cost the host in the times");
  verb->add_flag("--unprofiled", options->unprofiled, "Take out what the profiler cost the host (the default)")
      ->excludes(profiled);
  verb->add_option("--gpu", options->question.gpu, "The trace's GPU, where the file does not name it; a model's: h200");
  verb->add_option("--set", options->settings, "Of a model: batch=N, or KEY=VALUE of its family; repeatable")
      ->allow_extra_args(false);
  add_setup_options(*verb, options->setup);
  add_machine_option(*verb, options->machine);
  add_work_limits(*verb, options->limits);
  add_html_option(*verb, options->html);
  auto* json = verb->add_flag("--json", options->json, "One JSON object; with --all one a line");
  verb->add_flag("--csv", options->csv, "With --sweep: one CSV row a value and curve")->needs(sweep)->excludes(json);
  verb->footer(whatif_footer());
  verb->callback([options, &chosen] { chosen = [options] { return what_if_command(*options); }; });
}

}  // namespace forerun::cli
