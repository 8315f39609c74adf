// The trees of `forerun predict`: forests that correct the analytic cost model, grown from measured ops. They are learned,
// and stand here for that; the constants beside them are calibrated (lab/cli/calibrations).
#include <nlohmann/json.hpp>

#include "cli/command_work.h"
#include "lab/calibrate/train_hybrid.h"
#include "lab/cli/answer.h"
#include "lab/cli/measured_files.h"
#include "lab/cli/trainers/trainers.h"

namespace forerun::cli {
namespace {

struct HybridTraining {
  std::vector<std::string> records;
  std::vector<std::string> without;
  bool without_op_samples = false;
  std::string out;
  int seed = 1;
  bool json = false;
};

int grow_trees(const HybridTraining& training) {
  const auto files = measured_files(training.records);
  if (!files) return fail(files.error());
  HybridRequest request{.files = *files,
                        .without = {training.without.begin(), training.without.end()},
                        .op_samples = !training.without_op_samples,
                        .out = training.out,
                        .growth = {},
                        .problem = tell_problem};
  request.growth.seed = training.seed;
  const auto outcome = train_hybrid(request, CommandWork().control());
  if (!outcome) return fail(outcome.error());
  if (training.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"file", outcome->file},
                                              {"ops", outcome->ops},
                                              {"samples", outcome->samples},
                                              {"trees", outcome->trees},
                                              {"bytes", outcome->bytes},
                                              {"seconds", outcome->seconds}}
                           .dump());
    return kDone;
  }
  fmt::print("{}: {} trees, {:.1f} MB, from {} ops of iterations and {} op samples in {:.0f} s\n", outcome->file,
             outcome->trees, static_cast<double>(outcome->bytes) / 1e6, outcome->ops, outcome->samples,
             outcome->seconds);
  return kDone;
}

Run add_hybrid(CLI::App& app) {
  auto training = std::make_shared<HybridTraining>();
  app.add_option("--data", training->records, "Record files or folders, in place of data/h200");
  app.add_option("--without", training->without, "Families to leave out, to validate on");
  CLI::Option* alone = app.add_flag("--without-op-samples", training->without_op_samples,
                                    "Learn from the ops of iterations alone, to compare; --out says where to");
  CLI::Option* out = app.add_option("--out", training->out, "File for the trees, in place of data/cost/hybrid.bin");
  alone->needs(out);  // such trees are not what `forerun predict` shall ask
  app.add_option("--seed", training->seed, "Seed of the trees");
  app.add_flag("--json", training->json, "Print one JSON object");
  return [training] { return grow_trees(*training); };
}

}  // namespace

Trainer hybrid_trainer() {
  return {.name = "hybrid",
          .summary = "trees grown from measured ops, which `forerun predict` asks; needs XGBoost",
          .add = add_hybrid,
          .examples = {{"forerun train hybrid", "grow them anew from data/h200"},
                       {"forerun train hybrid --without resnet --out trees.bin.zst", "leave a family out"}}};
}

}  // namespace forerun::cli
