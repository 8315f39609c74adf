// Driple: a graph network that predicts bursts and idles of distributed training. It has data of its own, which
// forerun.testbed measured, and studies that train it many times.
#include "lab/cli/answer.h"
#include "lab/cli/trainers/trainers.h"
#include "lab/cli/trainers/training_options.h"
#include "lab/eval/driple_suite.h"
#include "lab/learn/training_session.h"

namespace forerun::cli {
namespace {

struct DripleCall {
  DripleTraining request;
  TrainingWords words;
  std::string write_cache;
  bool json = false;
};

int train_driple_network(const DripleCall& call) {
  const auto options = training_options(call.words);
  if (!options) return fail(options.error());
  DripleTraining request = call.request;
  request.recipe.options = *options;
  request.recipe.options.progress = [](const learn::EpochReport& report) {
    if (report.epoch % 10 == 0) tell(learn::to_text(report));
  };
  if (call.write_cache.empty()) return print_answer(train_driple(request), call.json);
  const auto written = write_driple_cache(request.data, call.write_cache);
  if (!written) return fail(written.error());
  tell(*written);
  return kDone;
}

Run add_driple_trainer(CLI::App& app) {
  auto call = std::make_shared<DripleCall>();
  DripleTraining& request = call->request;
  request.data.problem = tell_error;
  app.add_option("--data", request.data.records, "Record files or folders, in place of data/resources");
  app.add_option("--cache", request.cache, "A data set that --write-cache wrote, in place of the records");
  app.add_option("--write-cache", call->write_cache, "Write the data set as one file, and train nothing");
  app.add_option("--out", request.out, "Folder for the weights and studies; without it they are not kept");
  add_predictor_options(app, call->words);
  add_epoch_options(app, call->words);
  app.add_option("--folds", request.folds, "Judge on training families, left out in so many groups")
      ->check(CLI::Range(1, 99));
  app.add_option("--setting", request.setting, "Servers, workers and network, such as P1w2-10G");
  app.add_option("--pretrain", request.data.simulated, "Simulated workloads to train on before measured ones")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app.add_flag("--all-settings", request.all_settings, "Train on measured workloads of all settings");
  app.add_option(
      "--study", request.study,
      "ablations, samples (fewer workloads), transfer (to other settings), parts (that are tuned) or models (left "
      "out)");
  app.add_flag("--json", call->json, "Print one JSON object");
  return [call] { return train_driple_network(*call); };
}

}  // namespace

Trainer driple_trainer() {
  return {
      .name = "driple",
      .summary = "graph network over groups of ops: bursts and idles of GPU and network",
      .add = add_driple_trainer,
      .examples = {{"forerun train driple --pretrain 3000 --all-settings --out data/weights/driple", ""},
                   {"forerun train driple --study ablations --out data/weights/driple", "kept beside the weights"}}};
}

}  // namespace forerun::cli
