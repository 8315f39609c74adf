#include "report/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/csv_cells.h"
#include "base/json_writer.h"
#include "report/prediction.h"
#include "report/svg.h"
#include "report/table.h"

namespace forerun {
namespace {

// Prices are written with two digits, and small ones with as many as say something.
std::string money_text(double amount) {
  return amount >= 0.1 || amount == 0 ? fmt::format("{:.2f}", amount) : fmt::format("{:.2g}", amount);
}

std::string hours_text(double hours) {
  return hours >= 100 ? fmt::format("{:.0f}", hours) : fmt::format("{:.3g}", hours);
}

template <class Value>
bool any_has(const CompareAnswer& answer, std::optional<Value> CompareRow::*field) {
  return std::any_of(answer.rows.begin(), answer.rows.end(), [&](const CompareRow& row) { return row.*field; });
}

// Columns that only some answers have.
struct OptionalColumn {
  const char* heading;
  std::optional<double> CompareRow::*value;
  std::string (*text)(double);
};
constexpr OptionalColumn kOptionalColumns[] = {
    {"price/h", &CompareRow::price, money_text},
    {"cost/M samples", &CompareRow::cost_million_samples, money_text},
    {"run hours", &CompareRow::run_hours, hours_text},
    {"run cost", &CompareRow::run_cost, money_text},
};

const Prediction* first_predicted(const CompareAnswer& answer) {
  for (const CompareRow& row : answer.rows) {
    if (row.prediction) return &*row.prediction;
  }
  return nullptr;
}

std::string compare_headline(const CompareAnswer& answer) {
  const Prediction* p = first_predicted(answer);
  if (p == nullptr) return answer.model + "\n";
  return fmt::format("{}, batch {}, {}\n", answer.model, p->input.batch, setup_text(p->setup));
}

std::string what_to_take(const CompareAnswer& answer) {
  const CompareRow* fastest = answer.fastest();
  if (fastest == nullptr) return "None of them surely holds the run.\n";
  std::string text = fmt::format("Fastest that fits: {}, {} samples/s\n", fastest->gpu,
                                 rate_text(fastest->prediction->samples_per_second));
  if (const CompareRow* cheapest = answer.cheapest(); cheapest != nullptr) {
    text += fmt::format("Cheapest that fits: {}, {} for a million samples\n", cheapest->gpu,
                        money_text(*cheapest->cost_million_samples));
  }
  return text;
}

void write_row(JsonWriter& json, const CompareRow& row) {
  json.begin_object().field("gpu", row.gpu);
  if (!row.prediction) {
    json.field("error", row.prediction.error().message()).end_object();
    return;
  }
  const Prediction& p = *row.prediction;
  const FitVerdict verdict = p.memory_answer.verdict;
  json.field("iter_ms", milliseconds(p.times.iteration))
      .field("iter_low_ms", milliseconds(p.p10))
      .field("iter_high_ms", milliseconds(p.p90))
      .field("gpu_ms", milliseconds(p.times.gpu_busy))
      .field("host_ms", milliseconds(p.times.host_busy))
      .field("bound", name_of(p.times.bound))
      .field("samples_per_second", p.samples_per_second);
  if (p.tokens_per_second > 0) json.field("tokens_per_second", p.tokens_per_second);
  json.field("relative_speed", row.speed)
      .field("peak_allocated", p.memory.peak_allocated.value)
      .field("peak_reserved", p.memory.peak_reserved.value)
      .field("device_memory", p.device_memory.value)
      .field("fits", verdict == FitVerdict::fits)
      .field("verdict", name_of(verdict));
  if (row.price) json.field("price_per_hour", *row.price);
  if (row.cost_million_samples) json.field("cost_per_million_samples", *row.cost_million_samples);
  if (row.run_hours) json.field("run_hours", *row.run_hours);
  if (row.run_cost) json.field("run_cost", *row.run_cost);
  json.end_object();
}

}  // namespace

std::string to_text(const CompareAnswer& answer) {
  std::vector<std::string> heading = {"GPU", "iteration", "8 of 10 within", "GPU busy", "samples/s", "speed", "memory"};
  for (const OptionalColumn& column : kOptionalColumns) {
    if (any_has(answer, column.value)) heading.emplace_back(column.heading);
  }
  heading.emplace_back("");
  Table table(heading);
  table.align_left(heading.size() - 1);
  for (const CompareRow& row : answer.rows) {
    std::vector<std::string> cells = {row.gpu};
    if (!row.prediction) {
      cells.resize(heading.size() - 1, "-");
      cells.push_back(row.prediction.error().what);
      table.add(cells);
      continue;
    }
    const Prediction& p = *row.prediction;
    const auto iteration = static_cast<double>(std::max<int64_t>(p.times.iteration.value, 1));
    cells.insert(cells.end(),
                 {fmt::format("{:.2f} ms", milliseconds(p.times.iteration)),
                  fmt::format("{:.2f} to {:.2f}", milliseconds(p.p10), milliseconds(p.p90)),
                  percent(static_cast<double>(p.times.gpu_busy.value) / iteration), rate_text(p.samples_per_second),
                  row.speed > 0 ? fmt::format("{:.2f}", row.speed) : "-", needed_text(p)});
    for (const OptionalColumn& column : kOptionalColumns) {
      if (!any_has(answer, column.value)) continue;
      cells.push_back(row.*column.value ? column.text(*(row.*column.value)) : "-");
    }
    const FitVerdict verdict = p.memory_answer.verdict;
    cells.emplace_back(verdict == FitVerdict::fits ? "" : text_of(verdict));
    table.add(cells);
  }
  return compare_headline(answer) + table.text() + "\n" + what_to_take(answer);
}

std::string to_json(const CompareAnswer& answer) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.compare/1").field("model", answer.model);
  if (const Prediction* p = first_predicted(answer); p != nullptr) {
    json.field("batch", p->input.batch)
        .field("precision", name_of(p->setup.precision))
        .field("optimizer", name_of(p->setup.optimizer.kind));
  }
  if (answer.iterations > 0) json.field("iterations", answer.iterations);
  json.key("gpus").begin_array();
  for (const CompareRow& row : answer.rows) write_row(json, row);
  return json.end_array().end_object().take();
}

std::string to_csv(const CompareAnswer& answer) {
  std::string text =
      "gpu,iter_ms,iter_low_ms,iter_high_ms,gpu_ms,host_ms,bound,samples_per_second,tokens_per_second,relative_speed,"
      "peak_allocated,peak_reserved,device_memory,verdict,price_per_hour,cost_per_million_samples,run_hours,run_cost\n";
  for (const CompareRow& row : answer.rows) {
    if (!row.prediction) continue;
    const Prediction& p = *row.prediction;
    std::vector<std::string> cells = {csv_cell(row.gpu)};
    for (const Nanoseconds time : {p.times.iteration, p.p10, p.p90, p.times.gpu_busy, p.times.host_busy}) {
      cells.push_back(fmt::format("{}", milliseconds(time)));
    }
    cells.emplace_back(name_of(p.times.bound));
    for (const double value : {p.samples_per_second, p.tokens_per_second, row.speed}) {
      cells.push_back(fmt::format("{}", value));
    }
    for (const Bytes size : {p.memory.peak_allocated, p.memory.peak_reserved, p.device_memory}) {
      cells.push_back(fmt::format("{}", size.value));
    }
    cells.emplace_back(name_of(p.memory_answer.verdict));
    for (const OptionalColumn& column : kOptionalColumns) {
      cells.push_back(row.*column.value ? fmt::format("{}", *(row.*column.value)) : "");
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

std::string to_svg(const CompareAnswer& answer) {
  constexpr double kRow = 26, kBar = 16, kLabels = 260;
  std::vector<const CompareRow*> rows;
  double most = 1e-9;
  for (const CompareRow& row : answer.rows) {
    if (!row.prediction) continue;
    rows.push_back(&row);
    most = std::max(most, milliseconds(row.prediction->p90));
  }
  const std::vector<double> ticks = svg::round_ticks(most);
  const double end = ticks.back() >= most ? ticks.back() : most;
  const svg::Plot plot{.left = kLabels, .top = 80, .width = 560, .height = kRow * static_cast<double>(rows.size())};
  svg::Picture picture(900, plot.bottom() + 70);
  std::string below = compare_headline(answer);
  below.pop_back();
  picture.heading(20, "Iteration time on each GPU", below + "; orange: may not fit, grey: does not fit in memory");
  picture.frame(plot, "");
  for (const double tick : ticks) picture.tick_below(plot, tick / end, fmt::format("{:g}", tick));
  picture.text(plot.x(0.5), plot.bottom() + 48, "milliseconds; the line: 8 of 10 measurements", {.anchor = "middle"});
  for (size_t i = 0; i < rows.size(); ++i) {
    const Prediction& p = *rows[i]->prediction;
    const double middle = plot.top + kRow * (static_cast<double>(i) + 0.5);
    const FitVerdict verdict = p.memory_answer.verdict;
    const char* colour = verdict == FitVerdict::fits          ? svg::kBlue
                         : verdict == FitVerdict::may_not_fit ? svg::kOrange
                                                              : svg::kGrey;
    const double width = plot.width * milliseconds(p.times.iteration) / end;
    picture.box({.left = plot.left, .top = middle - kBar / 2, .width = width, .height = kBar}, colour);
    picture.line({plot.x(milliseconds(p.p10) / end), middle}, {plot.x(milliseconds(p.p90) / end), middle},
                 {.width = 1.5});
    picture.text(plot.left - 8, middle + 4, svg::shortened(rows[i]->gpu, 36), {.anchor = "end"});
  }
  return picture.document();
}

}  // namespace forerun
