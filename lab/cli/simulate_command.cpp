// forerun-lab simulate: writes training iterations that Forerun labels, for predictors to be trained on before they see measured ones.
#include "base/base64.h"
#include "base/json_file.h"
#include "base/json_writer.h"
#include "cli/command_work.h"
#include "cli/shard_options.h"
#include "lab/cli/answer.h"
#include "lab/cli/lab_verbs.h"
#include "lab/cli/task.h"
#include "lab/simulation/simulated_iterations.h"
#include "predict/predict.h"

namespace forerun::cli {
namespace {

struct SimulateWords {
  simulation::SimulationOptions options;
  std::string gpu{kDefaultGpu};
  bool analytic = false;
  std::string shard;
  std::string out;
};

int save_data(const Result<learn::DataSet>& data, const std::string& out) {
  if (!data) return fail(data.error());
  if (const Status saved = data->save(out); !saved.ok()) return fail(saved.error());
  fmt::print("{}: {}; {} distinct ops\n", out, data->source, data->rows().size());
  return kDone;
}

// A row of a part: the example as a data set of its own, in Base64; null where nothing that was drawn fits.
int simulate_shard(const SimulateWords& words, const Device& device, const CostModels& cost_models,
                   const CLI::App& verb) {
  JsonWriter about;
  about.begin_object()
      .field("seed", std::to_string(words.options.seed))
      .field("gpu", device.name)
      .field("analytic", !cost_models.residual_model.has_value())
      .end_object();
  const auto work = sharded_work(verb, static_cast<size_t>(words.options.count), {}, about.take());
  if (!work) return fail(work.error());
  return run_shard({words.shard, words.out}, *work, {words.options.threads, "iterations"}, CommandWork().control(),
                   [&](size_t number) -> Result<std::string> {
                     const auto example =
                         simulated_example(words.options, static_cast<int64_t>(number), device, cost_models);
                     return example ? json_quoted(to_base64(example->to_bytes())) : std::string("null");
                   });
}

int merge_simulated(const MergeOptions& options) {
  const Result<PartSet> parts = open_parts(options, "simulate");
  if (!parts) return fail(parts.error());
  const std::string& first = options.parts.front();
  const Error broken{"holds no simulated iterations that can be read", first, "make the parts anew with this program"};
  Result<JsonObject> about = JsonObject::parse(parts->work().about, first);
  if (!about) return fail(about.error());
  simulation::SimulatedData data(about->any_text("seed"), about->any_text("gpu"), about->flag("analytic"));
  if (const Status status = about->status(); !status.ok()) return fail(status.error());
  for (size_t number = 0; number < parts->size(); ++number) {
    const Result<std::string> row = parts->row(number);
    if (!row) return fail(row.error());
    if (*row == "null") {
      data.add(std::nullopt);
      continue;
    }
    const auto bytes = row->size() < 2 ? std::nullopt : from_base64(std::string_view(*row).substr(1, row->size() - 2));
    if (!bytes) return fail(broken);
    Result<learn::DataSet> example = learn::DataSet::from_bytes(*bytes, fmt::format("case {}", number));
    if (!example) return fail(example.error());
    data.add(std::move(*example));
  }
  return save_data(data.finish(), options.out);
}

int simulate(const SimulateWords& words, const CLI::App& verb) {
  const auto cost_models = load_cost_models({}, words.analytic ? Trees::without : Trees::with);
  if (!cost_models) return fail(cost_models.error());
  const auto device = cost_models->devices.find(words.gpu);
  if (!device) return fail(device.error());
  if (!words.shard.empty()) return simulate_shard(words, *device, *cost_models, verb);
  return save_data(simulate_iterations(words.options, *device, *cost_models, CommandWork().control()), words.out);
}

void add_simulate_merge(CLI::App& verb, Run& chosen) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* app = add_merge(verb, *options, "iterations");
  app->get_option("--out")->required();
  app->callback([options, &chosen] { chosen = [options] { return merge_simulated(*options); }; });
}

}  // namespace

void add_simulate(CLI::App& app, Run& chosen) {
  CLI::App* verb = app.add_subcommand("simulate", "Write iterations labelled by Forerun, to train predictors on");
  auto words = std::make_shared<SimulateWords>();
  verb->add_option(
      "--out", words->out,
      "File for the data set, which `forerun-lab train NAME --cache FILE` reads; with --shard for a part of it");
  verb->add_option("--count", words->options.count, "How many iterations, 100,000 by default")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  verb->add_option("--traced", words->options.traced,
                   "How many of them hold all ops with their times, for ETS (20,000); the others forward ops");
  verb->add_option("--seed", words->options.seed, "The same seed gives the same iterations");
  verb->add_option("--gpu", words->gpu, "GPU that they run on");
  verb->add_flag("--analytic", words->analytic,
                 "GPU times by the analytic model alone, which has learned from no measured GPU");
  verb->add_option("--threads", words->options.threads, "0: as many as the machine has");
  add_shard_option(*verb, words->shard, "iterations");
  add_simulate_merge(*verb, chosen);
  verb->footer(
      "Models are drawn from the families that are trained on, RandWire and random networks, with batch,\n"
      "precision, optimizer and layout; labels are what `forerun predict` says, on hosts fast and slow.\n\n"
      "Examples:\n" +
      example_lines({{"forerun-lab simulate --count 100000 --out simulated.bin", "some minutes on 16 cores"},
                     {"forerun-lab simulate --shard 0/4 --out part-0.jsonl", "a quarter of them; resumable"},
                     {"forerun-lab simulate merge part-*.jsonl --out simulated.bin", "all of them"},
                     {"forerun-lab train dnnperf-time --cache simulated.bin --out before", "pre-train on them"},
                     {"forerun-lab train dnnperf-time --start before --out after", "and tune on measured ones"}}));
  verb->callback([words, verb, &chosen] {
    if (asks_merge(*verb)) return;
    if (words->out.empty()) throw CLI::RequiredError("--out");
    chosen = [words, verb] { return simulate(*words, *verb); };
  });
}

}  // namespace forerun::cli
