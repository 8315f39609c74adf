// forerun-lab simulate: writes training iterations that Forerun labels, for predictors to be trained on before they see measured ones.
#include "cli/command_work.h"
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
  std::string out;
};

int simulate(const SimulateWords& words) {
  const auto cost_models = load_cost_models({}, words.analytic ? Trees::without : Trees::with);
  if (!cost_models) return fail(cost_models.error());
  const auto device = cost_models->devices.find(words.gpu);
  if (!device) return fail(device.error());
  const auto data = simulate_iterations(words.options, *device, *cost_models, CommandWork().control());
  if (!data) return fail(data.error());
  if (const Status saved = data->save(words.out); !saved.ok()) return fail(saved.error());
  fmt::print("{}: {}; {} distinct ops\n", words.out, data->source, data->rows().size());
  return kDone;
}

}  // namespace

void add_simulate(CLI::App& app, Run& chosen) {
  CLI::App* verb = app.add_subcommand("simulate", "Write iterations labelled by Forerun, to train predictors on");
  auto words = std::make_shared<SimulateWords>();
  verb->add_option("--out", words->out, "File for the data set, which `forerun-lab train NAME --cache FILE` reads")
      ->required();
  verb->add_option("--count", words->options.count, "How many iterations, 100,000 by default")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  verb->add_option("--traced", words->options.traced,
                   "How many of them hold all ops with their times, for ETS (20,000); the others forward ops");
  verb->add_option("--seed", words->options.seed, "The same seed gives the same iterations");
  verb->add_option("--gpu", words->gpu, "GPU that they run on");
  verb->add_flag("--analytic", words->analytic,
                 "GPU times by the analytic model alone, which has learned from no measured GPU");
  verb->add_option("--threads", words->options.threads, "0: as many as the machine has");
  verb->footer(
      "Models are drawn from the families that are trained on, RandWire and random networks, with batch,\n"
      "precision, optimizer and layout; labels are what `forerun predict` says, on hosts fast and slow.\n\n"
      "Examples:\n" +
      example_lines({{"forerun-lab simulate --count 100000 --out simulated.bin", "some minutes on 16 cores"},
                     {"forerun-lab train dnnperf-time --cache simulated.bin --out before", "pre-train on them"},
                     {"forerun-lab train dnnperf-time --start before --out after", "and tune on measured ones"}}));
  verb->callback([words, &chosen] { chosen = [words] { return simulate(*words); }; });
}

}  // namespace forerun::cli
