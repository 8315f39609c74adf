// The learned predictors of papers and baselines (lab/learn/predictors.h), trained on a suite's training split.
#include "lab/cli/answer.h"
#include "lab/cli/trainers/suite_data.h"
#include "lab/cli/trainers/trainers.h"
#include "lab/cli/trainers/training_options.h"
#include "lab/learn/training_session.h"

namespace forerun::cli {
namespace {

struct LearnedTraining {
  TrainingWords words;
  SuiteData data;
  std::string division = to_text(learn::Division{});
  std::string out;
  bool json = false;
};

int train_learned(const std::string& name, const LearnedTraining& training) {
  const auto options = training_options(training.words);
  if (!options) return fail(options.error());
  if (const auto known = learn::make_predictor(name); !known) return fail(known.error());
  const auto division = learn::parse_division(training.division);
  if (!division) return fail(division.error());
  auto data = load_suite_data(training.data);
  if (!data) return fail(data.error());
  if (const Status divided = learn::divide(*data, *division); !divided.ok()) return fail(divided.error());
  learn::TrainingRequest request{.predictor = name, .out = training.out, .options = *options};
  request.options.progress = [](const learn::EpochReport& report) { tell(learn::to_text(report)); };
  const auto outcome = learn::train_and_save(request, *data);
  if (!outcome) return fail(outcome.error());
  fmt::print("{}", training.json ? learn::to_json(request, *outcome) + "\n" : learn::to_text(*outcome));
  return kDone;
}

}  // namespace

Trainer learned_trainer(const std::string& name, const std::string& summary, bool in_epochs) {
  const auto add = [name, in_epochs](CLI::App& app) -> Run {
    auto training = std::make_shared<LearnedTraining>();
    add_suite_data(app, training->data);
    app.add_option(
        "--split", training->division,
        "families (default), or random: a fifth of the configurations of h200 is judged, drawn from all families; "
        "random:SEED draws others");
    app.add_option("--out", training->out, "Folder for the weights; without it they are not kept");
    add_predictor_options(app, training->words);
    if (in_epochs) {
      add_epoch_options(app, training->words);
      app.add_option(
          "--start", training->words.options.start,
          "Go on from the weights of this folder, such as ones pre-trained on what `forerun simulate` wrote");
    }
    app.add_flag("--json", training->json, "Print one JSON object");
    return [name, training] { return train_learned(name, *training); };
  };
  std::vector<Example> examples = {
      {"forerun train " + name + " --suite ets-t4 --out data/weights/ets-t4/" + name, "keep the weights"}};
  if (in_epochs) examples.push_back({"forerun train " + name + " --epochs 20 --seed 2", "fewer epochs, another seed"});
  return {.name = name, .summary = summary, .add = add, .examples = std::move(examples)};
}

}  // namespace forerun::cli
