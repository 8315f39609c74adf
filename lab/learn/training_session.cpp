#include "lab/learn/training_session.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/provenance.h"

namespace forerun::learn {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// Errors to six digits: more are noise, and fill the files that are kept.
double six_digits(double value) { return std::stod(fmt::format("{:.6g}", value)); }

OrderedJson to_json(const ErrorSummary& errors) {
  return {{"count", errors.count},         {"mre", six_digits(errors.mre)},   {"median", six_digits(errors.median)},
          {"p90", six_digits(errors.p90)}, {"bias", six_digits(errors.bias)}, {"rmse", six_digits(errors.rmse)}};
}

OrderedJson to_json(const std::vector<ErrorRow>& rows) {
  OrderedJson object = OrderedJson::object();
  for (const ErrorRow& row : rows) object[row.key] = to_json(row.errors);
  return object;
}

Status check_meta(const TrainOptions& options) {
  const MetaOptions& meta = *options.meta;
  for (const auto& [name, value] :
       {std::pair("--tasks", meta.tasks), {"--support", meta.support}, {"--inner-steps", meta.inner_steps}}) {
    if (value < 1) return Error{fmt::format("{} cannot be {}", name, value), name, "give a whole number from 1"};
  }
  if (!(meta.inner_rate > 0 && std::isfinite(meta.inner_rate))) {
    return Error{fmt::format("--inner-rate cannot be {}", meta.inner_rate), "--inner-rate", "give a number above 0"};
  }
  if (options.validate_on.empty()) return {};
  return Error{"of what is meta-learned the last weights count, and nothing is validated on", "--validate-on",
               "leave it out"};
}

}  // namespace

OrderedJson to_json(const Evaluation& evaluation) {
  std::vector<double> ratios;
  for (const double ratio : evaluation.ratios) ratios.push_back(six_digits(ratio));
  return {{"quantity", name_of(evaluation.quantity)}, {"all", to_json(evaluation.all)},
          {"by_bound", to_json(evaluation.by_bound)}, {"by_group", to_json(evaluation.by_group)},
          {"by_ops", to_json(evaluation.by_length)},  {"ratios", ratios}};
}

std::vector<Evaluation> evaluate_all(const DataSet& data, const Selection& examples,
                                     std::span<const Prediction> predictions) {
  std::vector<Evaluation> evaluations;
  for (const Target quantity : {Target::iteration_ms, Target::gpu_busy_ms, Target::peak_bytes}) {
    Evaluation evaluation = evaluate(data, examples, predictions, quantity);
    if (evaluation.all.count > 0) evaluations.push_back(std::move(evaluation));
  }
  return evaluations;
}

Status check_options(const TrainOptions& options) {
  const auto refused = [](const char* name, auto value, const char* remedy) {
    return Error{fmt::format("{} cannot be {}", name, value), name, remedy};
  };
  constexpr const char* kCount = "give a whole number from 1, or leave it out for the predictor's own";
  if (options.epochs && *options.epochs < 1) return refused("--epochs", *options.epochs, kCount);
  if (options.batch && *options.batch < 1) return refused("--batch", *options.batch, kCount);
  if (const double rate = options.learning_rate.value_or(1); !(rate > 0 && std::isfinite(rate))) {
    return refused("--rate", rate, "give a number above 0, or leave it out for the predictor's own");
  }
  if (options.patience < 0) return refused("--patience", options.patience, "give a number of epochs; 0: all of them");
  if (!(options.validation >= 0 && options.validation < 1)) {
    return refused("--validation", options.validation, "give a share from 0 to below 1");
  }
  if (!(options.seconds >= 0)) return refused("--seconds", options.seconds, "give a number above 0, or leave it out");
  if (options.resume && options.checkpoint.empty()) {
    return Error{"there is no checkpoint to go on from", "--resume", "name its folder with --checkpoint"};
  }
  return options.meta ? check_meta(options) : Status();
}

Result<TrainingOutcome> train_and_save(const TrainingRequest& given, const DataSet& data) {
  TrainingRequest request = given;
  if (request.options.meta) {
    if (request.predictor != kMetaLearned) {
      return Error{request.predictor + " cannot be meta-learned", "--meta", fmt::format("train {}", kMetaLearned)};
    }
    request.options.validation = 0;
  }
  if (const Status status = check_options(request.options); !status.ok()) return status.error();
  auto predictor = make_predictor(request.predictor);
  if (!predictor) return predictor.error();
  const std::vector<std::string>& families = request.options.validate_on;
  if (!families.empty() && split_by_groups(data, families).validation.empty()) {
    return Error{"no training family begins with '" + families.front() + "'", "--validate-on",
                 "name one of the data set's, such as resnet"};
  }
  if (!request.options.start.empty()) {
    if (const Status status = check_start(request.options.start, data.division); !status.ok()) return status.error();
  }
  TrainingOutcome outcome{.data = data.source, .division = data.division};
  auto log = (*predictor)->train(data, request.options);
  if (!log) return log.error();
  outcome.log = std::move(*log);
  if (!request.out.empty()) {
    const Status saved = save_weights(request.out, request.predictor, **predictor, data, request.options, outcome.log);
    if (!saved.ok()) return saved.error();
  }
  const Selection test = select(data, Split::test);
  const auto begun = std::chrono::steady_clock::now();
  const auto predictions = (*predictor)->predict(data, test);
  outcome.predict_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  outcome.test = evaluate_all(data, test, predictions);
  return outcome;
}

std::string to_text(const EpochReport& report) {
  std::string text = fmt::format("epoch {} of {}: loss {:.4g}", report.epoch, report.epochs, report.training_loss);
  if (report.validation_error > 0) text += fmt::format(", validation MRE {}", percent(report.validation_error));
  return text + fmt::format("{}, {:.0f} s", report.best ? " (best)" : "", report.seconds);
}

std::string to_text(const TrainingOutcome& outcome) {
  std::string text = fmt::format("trained for {} epochs in {:.1f} s on {}; best epoch {}, validation MRE {}\n",
                                 outcome.log.epochs.size(), outcome.log.seconds, outcome.log.device,
                                 outcome.log.best_epoch, percent(outcome.log.best_validation_error));
  for (const Evaluation& evaluation : outcome.test) {
    const ErrorSummary& all = evaluation.all;
    text +=
        fmt::format("test {} ({}): MRE {}, median {}, p90 {}, bias {}, RMSE {:.4g}\n", name_of(evaluation.quantity),
                    all.count, percent(all.mre), percent(all.median), percent(all.p90), percent(all.bias), all.rmse);
    for (const auto* rows : {&evaluation.by_bound, &evaluation.by_group, &evaluation.by_length}) {
      for (const ErrorRow& row : *rows) {
        text += fmt::format("  {:<24} {:>5}  MRE {:>7}  bias {:>7}  RMSE {:.4g}\n", row.key, row.errors.count,
                            percent(row.errors.mre), percent(row.errors.bias), row.errors.rmse);
      }
    }
  }
  return text;
}

std::string to_json(const TrainingRequest& request, const TrainingOutcome& outcome) {
  OrderedJson tests = OrderedJson::array();
  for (const Evaluation& evaluation : outcome.test) tests.push_back(to_json(evaluation));
  const OrderedJson object = {{"predictor", request.predictor},
                              {"seed", request.options.seed},
                              {"settings", request.options.settings},
                              {"epochs", outcome.log.epochs.size()},
                              {"best_epoch", outcome.log.best_epoch},
                              {"validation_error", outcome.log.best_validation_error},
                              {"seconds", outcome.log.seconds},
                              {"predict_seconds", outcome.predict_seconds},
                              {"device", outcome.log.device},
                              {"date", today_utc()},
                              {"data", outcome.data},
                              {"split", to_text(outcome.division)},
                              {"test", tests}};
  return object.dump();
}

}  // namespace forerun::learn
