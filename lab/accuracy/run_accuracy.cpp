#include "lab/accuracy/run_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/statistics.h"
#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr double kNear = 0.10, kFlattered = 0.15;

RunFigures figures(const std::vector<RunCase>& cases) {
  RunFigures sum;
  std::vector<double> errors;
  for (const RunCase& c : cases) {
    const double error = std::abs(c.error());
    errors.push_back(error);
    sum.mean += error;
    sum.bias += c.error();
    sum.worst = std::max(sum.worst, error);
    sum.covered += c.covered() ? 1 : 0;
  }
  sum.runs = static_cast<int64_t>(cases.size());
  if (cases.empty()) return sum;
  const auto n = static_cast<double>(cases.size());
  sum.median = median(errors);
  sum.mean /= n;
  sum.bias /= n;
  sum.covered /= n;
  return sum;
}

std::vector<std::string> sources_of(const RunAccuracy& accuracy, bool judges) {
  std::vector<std::string> sources;
  for (const RunCase& c : accuracy.cases) {
    if (c.judges == judges && std::find(sources.begin(), sources.end(), c.source) == sources.end())
      sources.push_back(c.source);
  }
  return sources;
}

std::vector<RunCase> cases_of(const RunAccuracy& accuracy, bool judges, const std::optional<std::string>& source) {
  std::vector<RunCase> cases;
  for (const RunCase& c : accuracy.cases) {
    // A source that is not sure has a line of its own, and no part in the sum.
    if (c.judges == judges && (source ? c.source == *source : c.sure)) cases.push_back(c);
  }
  return cases;
}

std::string half_name(bool judges) { return judges ? "judge" : "look at"; }

std::string search_text(const std::vector<SearchCase>& searches) {
  Table table({"run", "GPUs", "published ms", "its plan", "off", "best of the search", "ms", "faster by", "verdict"});
  for (const size_t column : {3, 5, 8}) table.align_left(column);
  for (const SearchCase& s : searches) {
    const double faster = static_cast<double>(s.run.measured.value) / static_cast<double>(s.best_time.value) - 1;
    table.add({s.run.model, grouped(s.run.gpus), fmt::format("{:.0f}", milliseconds(s.run.measured)), s.run.plan,
               signed_percent(s.run.error()), s.best, fmt::format("{:.0f}", milliseconds(s.best_time)),
               signed_percent(faster),
               fmt::format("{}{}", s.near() ? "near" : "off",
                           s.flatters() ? ", flattered" : (faster > kFlattered ? ", marked" : ""))});
  }
  return "\nThe published plan and the first of --search\n" + table.text();
}

std::string each_text(const RunAccuracy& accuracy) {
  Table table({"source", "model", "GPU", "GPUs", "plan", "published ms", "predicted ms", "off", "range ms"});
  for (const size_t column : {1, 2, 4}) table.align_left(column);
  for (const RunCase& c : accuracy.cases) {
    table.add({c.source, c.model, c.gpu, grouped(c.gpus), c.plan, fmt::format("{:.0f}", milliseconds(c.measured)),
               fmt::format("{:.0f}", milliseconds(c.predicted)), signed_percent(c.error()),
               fmt::format("{:.0f} to {:.0f}{}", milliseconds(c.low), milliseconds(c.high), c.covered() ? "" : " !")});
  }
  return "\n" + table.text();
}

nlohmann::ordered_json figures_json(const RunFigures& f) {
  return {{"runs", f.runs}, {"mape", f.mean},   {"median", f.median},
          {"bias", f.bias}, {"worst", f.worst}, {"covered", f.covered}};
}

}  // namespace

double RunCase::error() const {
  return static_cast<double>(predicted.value - measured.value) /
         static_cast<double>(std::max<int64_t>(measured.value, 1));
}

bool SearchCase::near() const { return std::abs(run.error()) <= kNear; }

bool SearchCase::flatters() const {
  return best_validated &&
         static_cast<double>(run.measured.value) > (1 + kFlattered) * static_cast<double>(best_time.value);
}

RunFigures figures_of(const RunAccuracy& accuracy, bool judges, const std::optional<std::string>& source) {
  return figures(cases_of(accuracy, judges, source));
}

std::string to_text(const RunAccuracy& accuracy) {
  Table table({"", "source", "runs", "mean error", "median", "bias", "worst", "within range"});
  table.align_left(1);
  const auto add = [&](bool judges, const std::string& name, const RunFigures& f) {
    table.add({half_name(judges), name, grouped(f.runs), percent(f.mean), percent(f.median), signed_percent(f.bias),
               percent(f.worst), percent(f.covered, 0)});
  };
  for (const bool judges : {false, true}) {
    for (const std::string& source : sources_of(accuracy, judges)) {
      const std::vector<RunCase> cases = cases_of(accuracy, judges, source);
      add(judges, source + (cases.front().sure ? "" : " (in no mean)"), figures(cases));
    }
    add(judges, "all", figures_of(accuracy, judges));
  }
  std::string text = "Runs on many GPUs that others published: step time\n" + table.text();
  for (const RefusedRun& refused : accuracy.refused)
    text += fmt::format("  not asked: {}: {}\n", refused.run, refused.why);
  if (!accuracy.searches.empty()) text += search_text(accuracy.searches);
  if (accuracy.each) text += each_text(accuracy);
  return text;
}

std::string to_json(const RunAccuracy& accuracy) {
  nlohmann::ordered_json sources = nlohmann::ordered_json::array();
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  nlohmann::ordered_json searches = nlohmann::ordered_json::array();
  for (const bool judges : {false, true}) {
    for (const std::string& source : sources_of(accuracy, judges)) {
      nlohmann::ordered_json json = {{"source", source}, {"judges", judges}};
      json.update(figures_json(figures_of(accuracy, judges, source)));
      sources.push_back(json);
    }
  }
  for (const RunCase& c : accuracy.cases) {
    runs.push_back({{"source", c.source},
                    {"model", c.model},
                    {"gpu", c.gpu},
                    {"gpus", c.gpus},
                    {"plan", c.plan},
                    {"judges", c.judges},
                    {"sure", c.sure},
                    {"published_ms", milliseconds(c.measured)},
                    {"step_ms", milliseconds(c.predicted)},
                    {"step_low_ms", milliseconds(c.low)},
                    {"step_high_ms", milliseconds(c.high)}});
  }
  for (const SearchCase& s : accuracy.searches) {
    searches.push_back({{"model", s.run.model},
                        {"gpus", s.run.gpus},
                        {"plan", s.run.plan},
                        {"error", s.run.error()},
                        {"best", s.best},
                        {"best_ms", milliseconds(s.best_time)},
                        {"best_validated", s.best_validated},
                        {"flatters", s.flatters()}});
  }
  nlohmann::ordered_json refused = nlohmann::ordered_json::array();
  for (const RefusedRun& r : accuracy.refused) refused.push_back({{"run", r.run}, {"why", r.why}});
  return nlohmann::ordered_json{{"schema", eval_schema("published-runs")},
                                {"suite", "published-runs"},
                                {"look", figures_json(figures_of(accuracy, false))},
                                {"judge", figures_json(figures_of(accuracy, true))},
                                {"sources", sources},
                                {"runs", runs},
                                {"searches", searches},
                                {"not_asked", refused}}
      .dump();
}

}  // namespace forerun
