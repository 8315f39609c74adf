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

std::string rates_text(double samples_per_second, double tokens_per_second) {
  std::string text = rate_text(samples_per_second) + " samples/s";
  if (tokens_per_second > 0) text += fmt::format(", {} tokens/s", rate_text(tokens_per_second));
  return text;
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

}  // namespace

void SweepTable::add(std::vector<std::string> values, const Result<Prediction>& prediction) {
  Row row;
  row.values = std::move(values);
  if (prediction) {
    const Prediction& p = *prediction;
    const auto cost = p.job ? p.job->cost() : std::nullopt;
    row.figures = Figures{p.times.iteration,
                          p.p10,
                          p.p90,
                          p.times.gpu_busy,
                          p.samples_per_second,
                          p.tokens_per_second,
                          p.job ? std::optional(p.job->hours) : std::nullopt,
                          cost ? std::optional(cost->expected) : std::nullopt,
                          needed_text(p),
                          p.memory_answer.verdict};
    const std::string warnings = warnings_text(p);
    if (warnings_.find(warnings) == std::string::npos) warnings_ += warnings;
  } else {
    row.fault = prediction.error().what;
    if (rows_.empty()) first_fault_ = prediction.error().message();
  }
  rows_.push_back(std::move(row));
}

// The row with the most samples a second of those with the verdict; nothing where none has it.
const SweepTable::Row* SweepTable::best_of(FitVerdict verdict) const {
  const Row* best = nullptr;
  for (const Row& row : rows_) {
    if (!row.figures || row.figures->verdict != verdict) continue;
    if (best == nullptr || row.figures->samples_per_second > best->figures->samples_per_second) best = &row;
  }
  return best;
}

std::string SweepTable::setting_text(const Row& row) const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < axes_.size(); ++i) parts.push_back(axes_[i] + "=" + row.values[i]);
  return fmt::format("{}, {}", fmt::join(parts, " "),
                     rates_text(row.figures->samples_per_second, row.figures->tokens_per_second));
}

// What stands below the table.
std::string SweepTable::conclusion() const {
  const bool built = std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.figures.has_value(); });
  if (!built && !rows_.empty()) return fmt::format("None of them could be built: {}\n", first_fault_);
  if (const Row* best = best_of(FitVerdict::fits); best != nullptr) {
    return fmt::format("Fastest that fits: {}\n", setting_text(*best));
  }
  if (const Row* best = best_of(FitVerdict::may_not_fit); best != nullptr) {
    return fmt::format("None of them surely fits. Fastest that may: {}\n", setting_text(*best));
  }
  return "None of them fits.\n";
}

std::string SweepTable::text() const {
  const auto has = [&](auto figure) {
    return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) { return row.figures && figure(*row.figures); });
  };
  const bool tokens = has([](const Figures& f) { return f.tokens_per_second > 0; });
  const bool hours = has([](const Figures& f) { return f.hours.has_value(); });
  const bool cost = has([](const Figures& f) { return f.cost.has_value(); });
  std::vector<std::string> heading = axes_;
  for (const char* column : {"iteration", "8 of 10 within", "samples/s"}) heading.emplace_back(column);
  if (tokens) heading.emplace_back("tokens/s");
  if (hours) heading.emplace_back("run");
  if (cost) heading.emplace_back("cost");
  for (const char* column : {"GPU busy", "memory", ""}) heading.emplace_back(column);
  Table table(heading);
  table.align_left(heading.size() - 1);
  const Row* best = best_of(FitVerdict::fits);
  for (const Row& row : rows_) {
    std::vector<std::string> cells = row.values;
    if (!row.figures) {
      cells.resize(heading.size() - 1, "-");
      cells.push_back(row.fault);
      table.add(cells);
      continue;
    }
    const Figures& f = *row.figures;
    const double busy = static_cast<double>(f.gpu_busy.value) / static_cast<double>(f.iteration.value);
    cells.insert(cells.end(), {fmt::format("{:.2f} ms", milliseconds(f.iteration)),
                               fmt::format("{:.2f} to {:.2f}", milliseconds(f.p10), milliseconds(f.p90)),
                               rate_text(f.samples_per_second)});
    if (tokens) cells.push_back(f.tokens_per_second > 0 ? rate_text(f.tokens_per_second) : "-");
    if (hours) cells.push_back(f.hours ? duration_text(*f.hours) : "-");
    if (cost) cells.push_back(f.cost ? money_text(*f.cost) : "-");
    cells.insert(cells.end(), {percent(busy), f.memory,
                               f.verdict != FitVerdict::fits ? std::string(text_of(f.verdict))
                               : &row == best                ? "fastest"
                                                             : ""});
    table.add(cells);
  }
  return warnings_ + table.text() + "\n" + conclusion();
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
    const Error& error = prediction.error();
    json.field("error", error.message())
        .key("fault")
        .begin_object()
        .field("what", error.what)
        .field("where", error.where)
        .field("remedy", error.remedy)
        .end_object();
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
