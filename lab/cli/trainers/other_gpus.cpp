// Habitat and NeuSight: GPU times of ops on GPUs that nothing was measured on, from NeuSight's op latencies.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/trainers/trainers.h"
#include "lab/eval/other_gpus_training.h"
#include "lab/learn/training_session.h"

namespace forerun::cli {
namespace {

struct OtherGpusCall {
  OtherGpuTraining request;
  bool json = false;
};

Run add_other_gpus_trainer(const std::string& name, CLI::App& app) {
  auto call = std::make_shared<OtherGpusCall>();
  OtherGpuTraining& request = call->request;
  request.predictor = name;
  app.add_option("--data", request.ops, "Folder that NeuSight's op latencies were unpacked in");
  app.add_option("--without", request.without, "GPUs to leave out, and to judge by");
  app.add_option("--out", request.out, "Folder for the weights; without it they are not kept");
  app.add_option("--seed", request.options.seed, "Seed of the networks");
  app.add_option("--epochs", request.options.epochs, "Passes over the tables")->check(CLI::Range(1, 1000));
  app.add_flag("--json", call->json, "Print one JSON object");
  return [call] { return print_answer(train_other_gpus(call->request, CommandWork().control()), call->json); };
}

Trainer other_gpus_trainer(const std::string& name, const std::string& summary) {
  const std::string train = "forerun train " + name + " --data FOLDER";
  return {.name = name,
          .summary = summary,
          .add = [name](CLI::App& app) { return add_other_gpus_trainer(name, app); },
          .examples = {{train + " --out data/weights/other-gpus/" + name, "keep the weights"},
                       {train + " --without t4", "judge it on a GPU that it is kept from"}}};
}

}  // namespace

Trainer habitat_trainer() {
  return other_gpus_trainer("habitat", "wave scaling and an MLP a kind of product: op times from one GPU to another");
}

Trainer neusight_trainer() {
  return other_gpus_trainer("neusight", "tiles, waves and the utilisation that an MLP tells: op times on any GPU");
}

}  // namespace forerun::cli
