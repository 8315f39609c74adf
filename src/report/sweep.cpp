#include "report/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/csv_cells.h"
#include "base/json_writer.h"
#include "report/job_time.h"
#include "report/prediction.h"
#include "report/table.h"

namespace forerun {
namespace {

// The row with the most samples a second of those with the verdict; nothing where none has it.
const SweepRow* best_of(const std::vector<SweepRow>& rows, FitVerdict verdict) {
  const SweepRow* best = nullptr;
  for (const SweepRow& row : rows) {
    if (!row.prediction || row.prediction->memory_answer.verdict != verdict) continue;
    if (best == nullptr || row.prediction->samples_per_second > best->prediction->samples_per_second) best = &row;
  }
  return best;
}

std::string setting_text(const std::vector<std::string>& axes, const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < axes.size(); ++i) parts.push_back(axes[i] + "=" + values[i]);
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string rates_text(const Prediction& p) {
  std::string text = rate_text(p.samples_per_second) + " samples/s";
  if (p.tokens_per_second > 0) text += fmt::format(", {} tokens/s", rate_text(p.tokens_per_second));
  return text;
}

// What stands below the table.
std::string conclusion(const std::vector<std::string>& axes, const std::vector<SweepRow>& rows) {
  const bool built = std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return row.prediction.ok(); });
  if (!built && !rows.empty()) {
    return fmt::format("None of them could be built: {}\n", rows.front().prediction.error().message());
  }
  if (const SweepRow* best = best_of(rows, FitVerdict::fits); best != nullptr) {
    return fmt::format("Fastest that fits: {}, {}\n", setting_text(axes, best->values), rates_text(*best->prediction));
  }
  if (const SweepRow* best = best_of(rows, FitVerdict::may_not_fit); best != nullptr) {
    return fmt::format("None of them surely fits. Fastest that may: {}, {}\n", setting_text(axes, best->values),
                       rates_text(*best->prediction));
  }
  return "None of them fits.\n";
}

// The places of the columns of `predict --csv` that no axis has.
std::vector<size_t> further_columns(const std::vector<std::string>& axes) {
  std::vector<size_t> places;
  const std::vector<std::string> columns = csv_columns();
  for (size_t i = 0; i < columns.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), columns[i]) == axes.end()) places.push_back(i);
  }
  return places;
}

// Of the models of the sweep, each once.
std::string warnings_of(const std::vector<SweepRow>& rows) {
  std::string text;
  for (const SweepRow& row : rows) {
    const std::string warnings = row.prediction ? warnings_text(*row.prediction) : "";
    if (text.find(warnings) == std::string::npos) text += warnings;
  }
  return text;
}

}  // namespace

std::string sweep_text(const std::vector<std::string>& axes, const std::vector<SweepRow>& rows) {
  const bool tokens = std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) {
    return row.prediction && row.prediction->tokens_per_second > 0;
  });
  std::vector<std::string> heading = axes;
  for (const char* column : {"iteration", "8 of 10 within", "samples/s"}) heading.emplace_back(column);
  if (tokens) heading.emplace_back("tokens/s");
  const auto has = [&](auto figure) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const SweepRow& row) { return row.prediction && figure(*row.prediction); });
  };
  const bool hours = has([](const Prediction& p) { return p.job.has_value(); });
  const bool cost = has([](const Prediction& p) { return p.job && p.job->cost(); });
  if (hours) heading.emplace_back("run");
  if (cost) heading.emplace_back("cost");
  for (const char* column : {"GPU busy", "memory", ""}) heading.emplace_back(column);
  Table table(heading);
  table.align_left(heading.size() - 1);
  const SweepRow* best = best_of(rows, FitVerdict::fits);
  for (const SweepRow& row : rows) {
    std::vector<std::string> cells = row.values;
    if (!row.prediction) {
      cells.resize(heading.size() - 1, "-");
      cells.push_back(row.prediction.error().what);
      table.add(cells);
      continue;
    }
    const Prediction& p = *row.prediction;
    const double busy = static_cast<double>(p.times.gpu_busy.value) / static_cast<double>(p.times.iteration.value);
    cells.insert(cells.end(), {fmt::format("{:.2f} ms", milliseconds(p.times.iteration)),
                               fmt::format("{:.2f} to {:.2f}", milliseconds(p.p10), milliseconds(p.p90)),
                               rate_text(p.samples_per_second)});
    if (tokens) cells.push_back(p.tokens_per_second > 0 ? rate_text(p.tokens_per_second) : "-");
    if (hours) cells.push_back(p.job ? duration_text(p.job->hours) : "-");
    if (cost) cells.push_back(p.job && p.job->cost() ? money_text(p.job->cost()->expected) : "-");
    const FitVerdict verdict = p.memory_answer.verdict;
    cells.insert(cells.end(), {percent(busy), needed_text(p),
                               verdict != FitVerdict::fits ? std::string(text_of(verdict))
                               : &row == best              ? "fastest"
                                                           : ""});
    table.add(cells);
  }
  return warnings_of(rows) + table.text() + "\n" + conclusion(axes, rows);
}

std::string sweep_json(const std::vector<std::string>& axes, const std::vector<std::string>& values,
                       const Result<Prediction>& prediction) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.sweep/1").key("sweep").begin_object();
  for (size_t i = 0; i < axes.size(); ++i) json.field(axes[i], values[i]);
  json.end_object();
  if (prediction) {
    write_fields(json, *prediction);
  } else {
    json.field("error", prediction.error().message());
  }
  return json.end_object().take();
}

std::string sweep_csv_header(const std::vector<std::string>& axes, bool whole_run) {
  std::vector<std::string> cells;
  for (const std::string& axis : axes) cells.push_back(csv_cell(axis));
  const std::vector<std::string> columns = csv_columns();
  for (const size_t place : further_columns(axes)) cells.push_back(columns[place]);
  if (whole_run) cells.insert(cells.end(), {"run_hours", "run_cost"});
  return fmt::format("{}\n", fmt::join(cells, ","));
}

std::string sweep_csv(const std::vector<std::string>& axes, const std::vector<std::string>& values,
                      const Prediction& prediction) {
  std::vector<std::string> cells;
  for (const std::string& value : values) cells.push_back(csv_cell(value));
  const std::vector<std::string> further = csv_cells(prediction);
  for (const size_t place : further_columns(axes)) cells.push_back(further[place]);
  if (prediction.job) {
    const auto cost = prediction.job->cost();
    cells.push_back(fmt::format("{}", prediction.job->hours));
    cells.push_back(cost ? fmt::format("{}", cost->expected) : "");
  }
  return fmt::format("{}\n", fmt::join(cells, ","));
}

}  // namespace forerun
