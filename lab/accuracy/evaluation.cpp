#include "lab/accuracy/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lab/accuracy/eval_schema.h"
#include "lab/learn/training_session.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr const char* kKeptNote =
    "  * kept from an earlier training and not computed now (data/weights/*/ablations.jsonl)\n";
constexpr const char* kDataNote =
    "  learned from: iterations that were measured; op samples, single ops timed alone; simulation, iterations that "
    "Forerun labelled, "
    "whose cost models learned from iterations and op samples\n";
constexpr const char* kRandomNote =
    "  simulation: labelled by cost models that were fitted to iterations some of which are judged here\n";
constexpr const char* kStaleNote = "  ** kept likewise, and trained or judged on other data than is here now\n";

using learn::Evaluation;
using learn::Target;

const char* mark_of(const SuiteRow& row) { return row.stale ? " **" : row.kept ? " *" : ""; }

std::string percent_or_dash(double share) { return share > 0 ? percent(share) : "-"; }
std::string one_decimal(double value) { return value > 0 ? fmt::format("{:.1f}", value) : "-"; }

std::string title(Target quantity) {
  switch (quantity) {
    case Target::iteration_ms: return "iteration time (RMSE in ms)";
    case Target::gpu_busy_ms: return "GPU busy time (RMSE in ms)";
    case Target::peak_bytes: break;
  }
  return "peak memory (RMSE in GB)";
}

double rmse(const Evaluation& evaluation) {
  return evaluation.all.rmse * (evaluation.quantity == Target::peak_bytes ? 1e-9 : 1);
}

// "h200", "h200, families left out in turn"
std::string shown_name(const SuiteResult& result) {
  return result.suite + (result.split.empty() ? "" : ", " + result.split);
}

const Evaluation* find(const std::vector<Evaluation>& evaluations, Target quantity) {
  for (const Evaluation& evaluation : evaluations) {
    if (evaluation.quantity == quantity) return &evaluation;
  }
  return nullptr;
}

const Evaluation* find(const SuiteResult& result, const std::string& label, Target quantity) {
  for (const SuiteRow& row : result.rows) {
    if (row.label == label) return find(row.evaluations, quantity);
  }
  return nullptr;
}

const PublishedFigure* published_for(const SuiteResult& result, const std::string& label, Target quantity) {
  for (const PublishedFigure& figure : result.published.systems) {
    if (label == figure.label && quantity == figure.quantity) return &figure;
  }
  return nullptr;
}

bool is_ablation(const SuiteResult& result, const std::string& label) {
  const auto& figures = result.published.ablations;
  return std::any_of(figures.begin(), figures.end(),
                     [&](const PublishedFigure& figure) { return label == figure.label; });
}

learn::ErrorSummary errors_of(const std::vector<learn::ErrorRow>& rows, const std::string& key) {
  for (const learn::ErrorRow& row : rows) {
    if (row.key == key) return row.errors;
  }
  return {};
}

// What the table says of one evaluation; dashes where there is none.
std::vector<std::string> cells_of(const std::string& label, const Evaluation* evaluation, const PublishedFigure* figure,
                                  const std::string& learned_from) {
  std::vector<std::string> cells = {label};
  if (evaluation == nullptr) {
    cells.resize(12, "-");
  } else {
    const learn::ErrorSummary& all = evaluation->all;
    const learn::ErrorSummary gpu = errors_of(evaluation->by_bound, "gpu");
    const learn::ErrorSummary host = errors_of(evaluation->by_bound, "host");
    cells.insert(cells.end(), {learned_from.empty() ? "-" : learned_from, grouped(all.count), percent_or_dash(all.mre),
                               percent_or_dash(all.median), percent_or_dash(all.p90), signed_percent(all.bias),
                               one_decimal(rmse(*evaluation)), percent_or_dash(gpu.mre), percent_or_dash(gpu.p90),
                               percent_or_dash(host.mre), percent_or_dash(host.p90)});
  }
  cells.push_back(figure == nullptr ? "-" : figure->system);
  cells.push_back(figure == nullptr ? "-" : percent_or_dash(figure->mre));
  cells.push_back(figure == nullptr ? "-" : one_decimal(figure->rmse));
  cells.push_back(figure == nullptr ? "-" : percent_or_dash(figure->unseen));
  return cells;
}

// Where a row with a date was kept, and whether it still holds.
std::string dated_note(const SuiteRow& row) {
  return fmt::format("  {} {}: kept from {}, not computed now{}\n", row.stale ? "**" : "*", row.label, row.kept_date,
                     row.stale ? ", and of other data or cost models than are here" : "");
}

// The errors of all predictors for one quantity beside the published ones; those that are not trained last.
std::string overall(const SuiteResult& result, Target quantity) {
  Table table({"predictor", "learned from", "judged", "MRE", "median", "p90", "bias", "RMSE", "GPU-bound", "p90",
               "host-bound", "p90", "published", "MRE", "RMSE", "unseen"});
  table.align_left(1);
  table.align_left(12);
  bool any = false;
  bool kept = false;
  bool stale = false;
  bool told = false;
  bool simulated = false;
  std::set<std::string> sources;
  std::string missing;
  std::string dated;
  for (const SuiteRow& row : result.rows) {
    const Evaluation* evaluation = find(row.evaluations, quantity);
    if (evaluation == nullptr || is_ablation(result, row.label)) continue;
    any = true;
    const PublishedFigure* figure = published_for(result, row.label, quantity);
    if (figure != nullptr) sources.insert(figure->source);
    kept = kept || (row.kept && !row.stale && row.kept_date.empty());
    stale = stale || (row.stale && row.kept_date.empty());
    told = told || !row.learned_from.empty();
    simulated = simulated || row.learned_from.find("simulation") != std::string::npos;
    if (!row.kept_date.empty()) dated += dated_note(row);
    table.add(cells_of(row.label + mark_of(row), evaluation, figure, row.learned_from));
  }
  for (const PublishedFigure& figure : result.published.systems) {
    if (quantity != figure.quantity || find(result, figure.label, quantity) != nullptr) continue;
    any = true;
    sources.insert(figure.source);
    table.add(cells_of(figure.label, nullptr, &figure, ""));
    missing += fmt::format("  not trained: {}\n", training_command(figure, result.division));
  }
  if (!any) return "";
  std::string text = fmt::format("{}\n{}{}", title(quantity), table.text(), missing);
  if (kept) text += kKeptNote;
  if (stale) text += kStaleNote;
  text += dated;
  if (told) text += kDataNote;
  if (simulated && result.division.random) text += kRandomNote;
  for (const std::string& source : sources) text += fmt::format("  published: {}\n", source);
  return text + "\n";
}

const SuiteRow* row_labelled(const SuiteResult& result, const std::string& label) {
  const auto found =
      std::find_if(result.rows.begin(), result.rows.end(), [&](const SuiteRow& row) { return row.label == label; });
  return found == result.rows.end() ? nullptr : &*found;
}

std::string ablations(const SuiteResult& result) {
  Table table({"ablation", "quantity", "validation", "MRE", "RMSE", "published", "RMSE"});
  table.align_left(1);
  std::set<std::string> sources;
  std::string missing;
  for (const PublishedFigure& figure : result.published.ablations) {
    const Evaluation* evaluation = find(result, figure.label, figure.quantity);
    const SuiteRow* row = row_labelled(result, figure.label);
    table.add({fmt::format("{} ({})", figure.label, figure.system),
               figure.quantity == Target::peak_bytes ? "memory" : "time",
               row == nullptr ? "-" : percent_or_dash(row->training.validation_error),
               evaluation == nullptr ? "not trained" : percent_or_dash(evaluation->all.mre) + mark_of(*row),
               evaluation == nullptr ? "-" : one_decimal(rmse(*evaluation)), percent_or_dash(figure.mre),
               one_decimal(figure.rmse)});
    if (evaluation == nullptr && missing.empty())
      missing = fmt::format("  not trained: {}\n", training_command(figure));
    sources.insert(figure.source);
  }
  if (sources.empty()) return "";
  const auto any = [&](auto which) { return std::any_of(result.rows.begin(), result.rows.end(), which); };
  std::string text = "ablations\n" + table.text() + missing;
  if (any([](const SuiteRow& row) { return row.kept && !row.stale; })) text += kKeptNote;
  if (any([](const SuiteRow& row) { return row.stale; })) text += kStaleNote;
  for (const std::string& source : sources) text += fmt::format("  published: {}\n", source);
  return text + "\n";
}

// Meta-learning across GPUs: kept results, with where they are from.
std::string few_traces(const SuiteResult& result) {
  if (result.few.empty()) return "";
  std::set<std::string> notes;
  for (const learn::FewRow& row : result.few) {
    const bool stale = row.data != result.data;
    notes.insert(fmt::format("  {} kept from {} on {}, not computed now (data/weights/{}/{}); {}{}\n",
                             stale ? "**" : "*", row.date, row.device, result.suite, learn::kFewFile, row.data,
                             stale ? ": other data than is here" : ""));
  }
  std::string text = "A GPU that is new to the predictor\n" + learn::to_text(result.few);
  for (const std::string& note : notes) text += note;
  return text + "\n";
}

using Rows = std::vector<learn::ErrorRow> Evaluation::*;
using Part = std::vector<Evaluation> SuiteRow::*;

// MRE of one quantity by group or length, a column for each predictor.
std::string broken_down(const SuiteResult& result, Part part, Target quantity, const std::string& what, Rows rows) {
  std::vector<const SuiteRow*> columns;
  std::map<std::string, int64_t> counts;
  for (const SuiteRow& row : result.rows) {
    const Evaluation* evaluation = find(row.*part, quantity);
    if (evaluation == nullptr || is_ablation(result, row.label)) continue;
    columns.push_back(&row);
    for (const learn::ErrorRow& error : evaluation->*rows) counts[error.key] = error.errors.count;
  }
  if (columns.empty()) return "";
  std::vector<std::string> heading = {what, "examples"};
  for (const SuiteRow* row : columns) heading.push_back(row->label);
  Table table(heading);
  for (const auto& [key, count] : counts) {
    std::vector<std::string> cells = {key, grouped(count)};
    for (const SuiteRow* row : columns)
      cells.push_back(percent_or_dash(errors_of(find(row->*part, quantity)->*rows, key).mre));
    table.add(cells);
  }
  return fmt::format("{}, MRE by {}\n{}\n", title(quantity), what, table.text());
}

// Until the epoch whose weights were kept.
std::string until_best(const learn::Training& training) {
  if (training.epochs == 0) return "-";
  return one_decimal(training.seconds * static_cast<double>(training.best_epoch) /
                     static_cast<double>(training.epochs));
}

std::string epochs_of(const learn::Training& training) {
  return training.epochs == 0 ? "-" : fmt::format("{} of {}", training.best_epoch, training.epochs);
}

// How long an answer takes, and how long it took until the weights were good: pre-trained on simulation and then tuned on
// measured runs, or trained on those at once.
std::string effort(const SuiteResult& result) {
  Table table({"predictor", "ms an answer", "pre-training: best epoch", "s until then", "validation",
               "training: best epoch", "s until then", "validation"});
  bool any = false;
  for (const SuiteRow& row : result.rows) {
    if (row.asked == 0) continue;
    any = true;
    table.add({row.label, fmt::format("{:.1f}", 1000 * row.seconds / static_cast<double>(row.asked)),
               epochs_of(row.pretraining), until_best(row.pretraining),
               percent_or_dash(row.pretraining.validation_error), epochs_of(row.training), until_best(row.training),
               percent_or_dash(row.training.validation_error)});
  }
  if (!any) return "";
  return fmt::format(
      "What answers and trainings take (answers here, many asked at once: {}; trainings as their cards say)\n{}\n",
      result.machine, table.text());
}

nlohmann::ordered_json to_json(const learn::Training& training) {
  return {{"epochs", training.epochs},
          {"best_epoch", training.best_epoch},
          {"seconds", training.seconds},
          {"validation_error", training.validation_error}};
}

nlohmann::ordered_json all_json(const std::vector<Evaluation>& evaluations) {
  auto list = nlohmann::ordered_json::array();
  for (const Evaluation& evaluation : evaluations) list.push_back(learn::to_json(evaluation));
  return list;
}

}  // namespace

std::string to_text(const SuiteResult& result) {
  std::string text =
      fmt::format("{}: {} test examples; {}\n", shown_name(result), grouped(result.examples), result.data);
  if (!result.date.empty()) text += fmt::format("  judged {} on {}\n", result.date, result.machine);
  std::map<std::string, int> problems;
  for (const std::string& problem : result.problems) ++problems[problem];
  for (const auto& [problem, count] : problems) {
    text += fmt::format("  left out{}: {}\n", count > 1 ? fmt::format(" ({} times)", count) : "", problem);
  }
  text += "\n";
  for (const Target quantity : {Target::iteration_ms, Target::gpu_busy_ms, Target::peak_bytes}) {
    text += overall(result, quantity);
  }
  if (result.ablations) text += ablations(result);
  text += few_traces(result);
  for (const Target quantity : {Target::iteration_ms, Target::gpu_busy_ms, Target::peak_bytes}) {
    text += broken_down(result, &SuiteRow::evaluations, quantity, "family", &Evaluation::by_group);
  }
  text += broken_down(result, &SuiteRow::evaluations, Target::iteration_ms, "number of ops", &Evaluation::by_length);
  if (result.ood > 0) {
    text +=
        fmt::format("Out of distribution, neither trained on nor counted above: {} examples\n", grouped(result.ood));
    text += broken_down(result, &SuiteRow::ood, Target::iteration_ms, "family", &Evaluation::by_group);
    text += broken_down(result, &SuiteRow::ood, Target::peak_bytes, "family", &Evaluation::by_group);
    text += broken_down(result, &SuiteRow::randwire, Target::iteration_ms, "number of ops of randwire",
                        &Evaluation::by_length);
  }
  text += effort(result);
  return text;
}

std::string to_json(const SuiteResult& result) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const SuiteRow& row : result.rows) {
    rows.push_back({{"predictor", row.predictor},
                    {"label", row.label},
                    {"trained_on", row.trained_on},
                    {"learned_from", row.learned_from},
                    {"weights", row.weights},
                    {"seconds", row.seconds},
                    {"asked", row.asked},
                    {"training", to_json(row.training)},
                    {"pretraining", to_json(row.pretraining)},
                    {"kept", row.kept},
                    {"kept_date", row.kept_date},
                    {"stale", row.stale},
                    {"evaluations", all_json(row.evaluations)},
                    {"ood", all_json(row.ood)},
                    {"randwire", all_json(row.randwire)}});
  }
  Json few = Json::array();
  for (const learn::FewRow& row : result.few) few.push_back(Json::parse(learn::to_json_line(row)));
  Json published = Json::array();
  for (const auto* figures : {&result.published.systems, &result.published.ablations}) {
    for (const PublishedFigure& figure : *figures) {
      const bool trained = find(result, figure.label, figure.quantity) != nullptr;
      published.push_back({{"label", figure.label},
                           {"system", figure.system},
                           {"quantity", learn::name_of(figure.quantity)},
                           {"mre", figure.mre},
                           {"rmse", figure.rmse},
                           {"unseen", figure.unseen},
                           {"source", figure.source},
                           {"trained", trained}});
    }
  }
  return Json{{"schema", eval_schema(result.suite)},
              {"suite", shown_name(result)},
              {"data", result.data},
              {"split", learn::to_text(result.division)},
              {"date", result.date},
              {"machine", result.machine},
              {"examples", result.examples},
              {"ood", result.ood},
              {"predictors", rows},
              {"few", few},
              {"published", published},
              {"problems", result.problems}}
      .dump();
}

}  // namespace forerun
