// The learned predictors of papers and baselines (lab/learn/predictors.h), trained on a suite's training split.
#include <filesystem>

#include "lab/cli/answer.h"
#include "lab/cli/trainers/suite_data.h"
#include "lab/cli/trainers/trainers.h"
#include "lab/cli/trainers/training_options.h"
#include "lab/learn/few_study.h"
#include "lab/learn/training_session.h"

namespace forerun::cli {
namespace {

using learn::kMetaLearned;

struct LearnedTraining {
  TrainingWords words;
  SuiteData data;
  std::string division = to_text(learn::Division{});
  std::vector<std::string> starts;
  std::string out;
  bool meta = false;
  learn::MetaOptions meta_options;
  std::string study;
  learn::FewRequest few;
  bool json = false;
};

int train_once(const std::string& name, const LearnedTraining& training, const learn::TrainOptions& options,
               const learn::DataSet& data) {
  learn::TrainingRequest request{.predictor = name, .out = training.out, .options = options};
  if (!training.starts.empty()) request.options.start = training.starts.front();
  request.options.progress = [](const learn::EpochReport& report) { tell(learn::to_text(report)); };
  const auto outcome = learn::train_and_save(request, data);
  if (!outcome) return fail(outcome.error());
  fmt::print("{}", training.json ? learn::to_json(request, *outcome) + "\n" : learn::to_text(*outcome));
  return kDone;
}

// Starts judged on the GPU of the data; the rows are kept beside those that are there.
int study_few(const std::string& name, const LearnedTraining& training, const learn::TrainOptions& options,
              const learn::DataSet& data) {
  learn::FewRequest request = training.few;
  request.predictor = name;
  request.starts = training.starts;
  request.options = options;
  request.progress = tell;
  const auto rows = learn::run_few_study(request, data);
  if (!rows) return fail(rows.error());
  if (!training.out.empty()) {
    const std::string file = (std::filesystem::path(training.out) / learn::kFewFile).string();
    if (const Status kept = learn::keep_few_rows(file, *rows); !kept.ok()) return fail(kept.error());
  }
  if (!training.json) fmt::print("{}", learn::to_text(*rows));
  for (const learn::FewRow& row : *rows) {
    if (training.json) fmt::print("{}\n", learn::to_json_line(row));
  }
  return kDone;
}

// What the words ask for that is no option of a training alone.
Status check_words(const LearnedTraining& training) {
  const bool study = !training.study.empty();
  if (study && training.study != learn::kFewStudy) {
    return Error{"there is no study '" + training.study + "'", "--study", std::string("use ") + learn::kFewStudy};
  }
  if (study && training.meta) return Error{"a study learns no start", "--meta", "train it first, with --meta --out"};
  if (study && training.starts.empty()) {
    return Error{"there is nothing to start from", "--start",
                 std::string("name folders of weights, or ") + learn::kScratchStart};
  }
  if (!study && training.starts.size() > 1) return Error{"training starts from one folder", "--start", "name one"};
  return {};
}

int train_learned(const std::string& name, const LearnedTraining& training) {
  auto options = training_options(training.words);
  if (!options) return fail(options.error());
  if (training.meta) options->meta = training.meta_options;
  if (const Status status = learn::check_options(*options); !status.ok()) return fail(status.error());
  if (const Status status = check_words(training); !status.ok()) return fail(status.error());
  if (const auto known = learn::make_predictor(name); !known) return fail(known.error());
  const auto division = learn::parse_division(training.division);
  if (!division) return fail(division.error());
  auto data = load_suite_data(training.data);
  if (!data) return fail(data.error());
  if (const Status divided = learn::divide(*data, *division); !divided.ok()) return fail(divided.error());
  return training.study.empty() ? train_once(name, training, *options, *data)
                                : study_few(name, training, *options, *data);
}

// Learning across GPUs, and what that is worth on a further one.
void add_meta_options(CLI::App& app, LearnedTraining& training) {
  const auto count = CLI::Range(int64_t{1}, int64_t{1} << 30);
  CLI::Option* meta = app.add_flag("--meta", training.meta,
                                   "Learn a start across the GPUs of the data (first-order MAML), from which a few "
                                   "traces of another go far; an epoch is twenty outer steps");
  app.add_option("--tasks", training.meta_options.tasks, "Episodes of an outer step (8), each of one GPU")->needs(meta);
  app.add_option("--support", training.meta_options.support, "Traces that an episode learns from (10)")->needs(meta);
  app.add_option("--inner-steps", training.meta_options.inner_steps, "Steps of an episode (5)")->needs(meta);
  app.add_option("--inner-rate", training.meta_options.inner_rate, "Learning rate of those (0.001)")->needs(meta);
  CLI::Option* study =
      app.add_option("--study", training.study,
                     "few: tune each --start on a few traces of the data's GPU, and judge it on test families");
  app.add_option("--few", training.few.few, "Numbers of traces (5, 10, 20 and 50)")->check(count)->needs(study);
  app.add_option("--draws", training.few.draws, "So many draws of them (3)")->check(count)->needs(study);
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
          "--start", training->starts,
          "Go on from the weights of this folder, such as ones pre-trained on what `forerun simulate` wrote");
    }
    if (name == kMetaLearned) add_meta_options(app, *training);
    app.add_flag("--json", training->json, "Print one JSON object");
    return [name, training] { return train_learned(name, *training); };
  };
  std::vector<Example> examples = {
      {"forerun train " + name + " --suite ets-t4 --out data/weights/ets-t4/" + name, "keep the weights"}};
  if (in_epochs) examples.push_back({"forerun train " + name + " --epochs 20 --seed 2", "fewer epochs, another seed"});
  if (name == kMetaLearned) {
    examples.push_back({"forerun train ets --meta --cache t4.bin --cache a100.bin --set features=shared --out meta",
                        "a start for other GPUs"});
    examples.push_back(
        {"forerun train ets --study few --start meta --start scratch --set features=shared", "and what it is worth"});
  }
  return {.name = name, .summary = summary, .add = add, .examples = std::move(examples)};
}

}  // namespace forerun::cli
