// forerun sweep MODEL --over NAME=VALUES: many configurations at once, and the best of them.
#include <fmt/format.h>

#include "api/sweep.h"
#include "base/json_file.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "cli/job_options.h"
#include "cli/setup_options.h"
#include "cli/shard_options.h"
#include "cli/slurm_array_options.h"
#include "report/prediction.h"
#include "report/sweep.h"

namespace forerun::cli {
namespace {

enum class SweepForm : uint8_t { text, json, csv };

struct SweepOptions {
  std::string machine;
  std::string model;
  std::string gpu;
  std::vector<std::string> over;
  std::vector<std::string> settings;
  SetupOptions setup;
  JobLength job;
  PriceOptions prices;
  unsigned threads = 0;
  WorkLimits limits;
  ShardOptions shard;
  SlurmArrayOptions slurm;
  HtmlOption html;
  SweepForm form = SweepForm::text;
};

// What options beside --set and --over say.
Settings given_by_option(const SweepOptions& options) {
  Settings given;
  if (!options.model.empty()) given.emplace_back("model", "the model's name");
  if (!options.gpu.empty()) given.emplace_back("gpu", "--gpu");
  if (!options.setup.precision.empty()) given.emplace_back("precision", "--precision");
  if (!options.setup.optimizer.empty()) given.emplace_back("optimizer", "--optimizer");
  if (!options.setup.checkpoint.empty()) given.emplace_back("checkpoint", "--checkpoint");
  if (!options.setup.compile.empty()) given.emplace_back("compile", "--compile");
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

// What a form of the answer needs to know beside the configurations.
struct SweepHeading {
  std::vector<std::string> axes;
  bool whole_run = false;  // hours and cost of it are told
};

// Rows as they come, in their order, written in the form that was asked for.
class SweepRows {
 public:
  using Writer = std::function<Status(std::string_view)>;
  SweepRows(SweepHeading heading, SweepForm form, Writer write)
      : heading_(std::move(heading)), form_(form), write_(std::move(write)), table_(heading_.axes) {}

  Status begin() {
    return form_ == SweepForm::csv ? write_(sweep_csv_header(heading_.axes, heading_.whole_run)) : Status();
  }
  Status add(const std::vector<std::string>& values, const Result<Prediction>& prediction) {
    any_built_ = any_built_ || prediction.ok();
    if (form_ == SweepForm::json) return write_(sweep_json(heading_.axes, values, prediction) + "\n");
    if (form_ == SweepForm::text) {
      table_.add(values, prediction);
    } else if (prediction) {
      return write_(sweep_csv(heading_.axes, values, *prediction));
    } else {
      fmt::print(stderr, "forerun: {}\n", prediction.error().message());
    }
    return {};
  }
  // The same from a line of JSON.
  Status add(const std::string& json, const std::string& where) {
    if (form_ == SweepForm::json && any_built_) return write_(json + "\n");
    const Result<SweepLine> line = read_sweep_json(heading_.axes, json, where);
    if (!line) return line.error();
    if (form_ != SweepForm::json) return add(line->values, line->prediction);
    any_built_ = line->prediction.ok();
    return write_(json + "\n");
  }
  Status end() { return form_ == SweepForm::text ? write_(table_.text()) : Status(); }
  [[nodiscard]] int exit_code() const { return any_built_ ? kDone : kInputAtFault; }

 private:
  SweepHeading heading_;
  SweepForm form_;
  Writer write_;
  SweepTable table_;
  bool any_built_ = false;
};

std::string heading_json(const SweepHeading& heading) {
  JsonWriter json;
  return json.begin_object().field("axes", heading.axes).field("whole_run", heading.whole_run).end_object().take();
}

Result<SweepHeading> read_heading(const std::string& text, const std::string& where) {
  Result<JsonObject> json = JsonObject::parse(text, where);
  if (!json) return json.error();
  SweepHeading heading{json->texts("axes"), json->flag("whole_run")};
  if (heading.axes.empty()) json->fail("axes", "are none");
  if (const Status status = json->status(); !status.ok()) return status.error();
  return heading;
}

// Files that the request reads: models that are none of the zoo, and prices.
std::vector<std::string> files_of(const SweepRequest& request, const PriceOptions& prices) {
  std::vector<std::string> files = {request.base.model, prices.file};
  for (const auto& [name, value] : request.fixed) {
    if (name == "model") files.push_back(value);
  }
  for (const SweepAxis& axis : request.axes) {
    if (axis.name == "model") files.insert(files.end(), axis.values.begin(), axis.values.end());
  }
  std::erase(files, "");
  return files;
}

int run(const SweepOptions& options, const CLI::App& verb) {
  const Result<CostModels> cost_models = load_cost_models_for(options.machine);
  if (!cost_models) return fail(cost_models.error());
  const Result<SweepRequest> request = sweep_request(options, cost_models->devices);
  if (!request) return fail(request.error());
  const Result<SweepCases> cases = sweep_cases(*request, *cost_models);
  if (!cases) return fail(cases.error());
  const SweepHeading heading{cases->names(), request->job.any()};
  if (options.shard.any()) {
    if (cost_models->machine != nullptr && options.machine.empty()) {
      return fail(machine_not_named());
    }
    std::vector<std::string> files = files_of(*request, options.prices);
    if (cost_models->machine != nullptr) files.push_back(options.machine);
    const auto work = sharded_work(verb, cases->size(), files, heading_json(heading));
    if (!work) return fail(work.error());
    if (options.slurm.any()) {
      const std::vector<std::string> form = options.form == SweepForm::json  ? std::vector<std::string>{"--json"}
                                            : options.form == SweepForm::csv ? std::vector<std::string>{"--csv"}
                                                                             : std::vector<std::string>{};
      return submit_slurm_array(options.slurm, verb, *work, {options.shard.out, options.threads, form});
    }
    return run_shard(options.shard, *work, {options.threads, "configurations"}, CommandWork(options.limits).control(),
                     [&](size_t number) -> Result<std::string> {
                       const SweepCase one = (*cases)[number];
                       return sweep_json(heading.axes, one.values, predict_case(one, *cost_models));
                     });
  }
  SweepRows rows(heading, options.form, [](std::string_view text) {
    fmt::print("{}", text);
    return Status();
  });
  (void)rows.begin();
  std::string page;
  const auto take = [&](const SweepCase& one, const Result<Prediction>& prediction) {
    if (options.html.asked()) page += sweep_json(heading.axes, one.values, prediction) + "\n";
    (void)rows.add(one.values, prediction);
  };
  const auto printing =
      options.form == SweepForm::text ? CommandWork::Answer::when_whole : CommandWork::Answer::as_it_comes;
  const Status status =
      sweep(*cases, *cost_models, options.threads, take, CommandWork(options.limits, printing).control());
  if (!status.ok()) return fail(status.error());
  if (options.html.asked()) {
    if (const Status written = write_html(options.html, page); !written.ok()) return fail(written.error());
  }
  (void)rows.end();
  return rows.exit_code();
}

struct SweepMerge {
  MergeOptions merge;
  SweepForm form = SweepForm::text;
};

int merge(const SweepMerge& options) {
  const Result<PartSet> parts = open_parts(options.merge, "sweep");
  if (!parts) return fail(parts.error());
  Result<SweepHeading> heading = read_heading(parts->work().about, options.merge.parts.front());
  if (!heading) return fail(heading.error());
  Result<MergedOutput> output = MergedOutput::open(options.merge.out);
  if (!output) return fail(output.error());
  SweepRows rows(std::move(*heading), options.form, [&](std::string_view text) { return output->write(text); });
  Status status = rows.begin();
  for (size_t number = 0; status.ok() && number < parts->size(); ++number) {
    const Result<std::string> row = parts->row(number);
    status = row ? rows.add(*row, fmt::format("case {}", number)) : Status(row.error());
  }
  if (status.ok()) status = rows.end();
  if (status.ok()) status = output->finish();
  if (!status.ok()) return fail(status.error());
  return rows.exit_code();
}

void add_forms(CLI::App& verb, SweepForm& form) {
  auto* json = verb.add_flag_callback(
      "--json", [&form] { form = SweepForm::json; }, "One JSON object a configuration on standard output");
  verb.add_flag_callback(
          "--csv", [&form] { form = SweepForm::csv; }, "One CSV row a configuration on standard output")
      ->excludes(json);
}

void add_sweep_merge(CLI::App& verb, Run& chosen) {
  auto options = std::make_shared<SweepMerge>();
  CLI::App* app = add_merge(verb, options->merge, "configurations");
  add_forms(*app, options->form);
  app->footer(
      "Examples:\n"
      "  forerun sweep merge part-0.jsonl part-1.jsonl --csv -o sweep.csv\n"
      "  forerun sweep merge part-*.jsonl --json\n"
      "A shard or a configuration that is missing is named, and nothing is printed. Parts of different requests,\n"
      "programs or data are refused.");
  app->callback([options, &chosen] { chosen = [options] { return merge(*options); }; });
}

}  // namespace

void add_sweep(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* verb = app.add_subcommand("sweep", "Many configurations of a model at once, and the fastest that fits");
  verb->add_option("MODEL", options->model,
                   "A name from `forerun zoo`, a Hugging Face config.json, an ONNX file, or a capture made with "
                   "--batch-sizes; not with "
                   "--over model=A,B");
  verb->add_option(
          "--over", options->over,
          "NAME=VALUES to go through; repeatable (all combinations). NAME: model, gpu, batch, precision, "
          "optimizer, checkpoint, accumulate, lora, quantize, channels_last, compile, or a parameter of the model. "
          "VALUES: a,b,c "
          "or 8..256*2 or 1..9+2")
      ->allow_extra_args(false);
  verb->add_option("--gpu", options->gpu, "GPU by name (`forerun devices` lists them); default h200");
  verb->add_option("--set", options->settings, "KEY=VALUE that stays the same; repeatable")->allow_extra_args(false);
  add_setup_options(*verb, options->setup);
  add_compile_option(*verb, options->setup);
  add_machine_option(*verb, options->machine);
  add_job_options(*verb, options->job);
  add_price_options(*verb, options->prices);
  verb->add_option("--threads", options->threads, "How many at a time; default: as many as there are cores")
      ->check(CLI::Range(0, 1024));
  add_work_limits(*verb, options->limits);
  add_forms(*verb, options->form);
  add_html_option(*verb, options->html);
  add_shard_options(*verb, options->shard, "configurations");
  add_slurm_array_options(*verb, options->slurm);
  add_sweep_merge(*verb, chosen);
  verb->footer(
      "Examples:\n"
      "  forerun sweep resnet50 --over batch=8..512*2 --over precision=fp32,amp_bf16\n"
      "  forerun sweep vit_b_16 --over gpu=a100_80gb,h100_sxm,h200 --over image=224,384 --set batch=64\n"
      "  forerun sweep gpt2_small --over seq=256..1024*2 --over optimizer=adamw,sgd --csv > sweep.csv\n"
      "  forerun sweep --over model=resnet50,vit_b_16,swin_t --over batch=32,64\n"
      "  forerun sweep Qwen/Qwen3-8B --lora 16 --over quantize=none,nf4,int8 --tokens 100M --price h200=3\n"
      "  forerun sweep resnet50 --over batch=1..4000 --shard 0/4 --out part-0.jsonl  a quarter of it\n"
      "  forerun sweep merge part-0.jsonl part-1.jsonl part-2.jsonl part-3.jsonl --csv  all of it\n"
      "  forerun sweep resnet50 --over batch=1..4000 --slurm 16 --csv --out sweep.csv  on a cluster\n"
      "A configuration fits, may not fit (the range of such runs crosses the GPU's memory) or does not fit.\n"
      "Exit code 1: none of the configurations could be built.");
  verb->callback([options, verb, &chosen] {
    if (asks_merge(*verb)) return;
    if (options->over.empty()) throw CLI::RequiredError("--over");
    check_slurm_array_options(options->slurm, options->shard);
    if (options->shard.any() && !options->slurm.any() && options->form != SweepForm::text) {
      throw CLI::ValidationError("--out",
                                 "keeps all that any form needs: give --json or --csv to `forerun sweep merge`");
    }
    if (options->shard.any() && options->html.asked()) {
      throw CLI::ValidationError("--html", "shows all configurations, and a shard has a part of them: leave out --out");
    }
    chosen = [options, verb] { return run(*options, *verb); };
  });
}

}  // namespace forerun::cli
