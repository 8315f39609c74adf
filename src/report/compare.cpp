#include "report/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/csv_cells.h"
#include "base/json_writer.h"
#include "report/job_time.h"
#include "report/prediction.h"
#include "report/svg.h"
#include "report/table.h"

namespace forerun {
namespace {

template <class Value>
bool any_has(const CompareAnswer& answer, std::optional<Value> CompareRow::*field) {
  return std::any_of(answer.rows.begin(), answer.rows.end(), [&](const CompareRow& row) { return row.*field; });
}

// Of CSV, where they are known.
constexpr std::optional<double> CompareRow::*kOptionalFigures[] = {
    &CompareRow::price, &CompareRow::cost_million_samples, &CompareRow::run_hours, &CompareRow::run_cost,
    &CompareRow::run_energy};

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

std::string in_currency(const CompareAnswer& answer, double amount) {
  return answer.currency.empty() ? money_text(amount) : money_text(amount) + " " + answer.currency;
}

// "412 tokens/s", or samples where there are none.
std::string rate_of(const Prediction& p) {
  return p.tokens_per_second > 0 ? rate_text(p.tokens_per_second) + " tokens/s"
                                 : rate_text(p.samples_per_second) + " samples/s";
}

std::string run_text(const CompareAnswer& answer, const CompareRow& row) {
  std::string text;
  if (row.run_hours) text += fmt::format(", the run {}", duration_text(*row.run_hours));
  if (row.run_cost) {
    text += fmt::format(" for {}", in_currency(answer, *row.run_cost));
  } else if (row.cost_million_samples) {
    text += fmt::format(", {} for a million samples", in_currency(answer, *row.cost_million_samples));
  }
  return text;
}

std::string limits_text(const CompareAnswer& answer) {
  std::string text;
  if (answer.deadline_hours) text += fmt::format(" in {}", duration_text(*answer.deadline_hours));
  if (answer.budget) text += fmt::format(" for at most {}", in_currency(answer, *answer.budget));
  return text;
}

std::string what_to_take(const CompareAnswer& answer) {
  if (first_predicted(answer) == nullptr) return "None of them can run it.\n";
  const CompareRow* fastest = answer.fastest();
  const std::string limits = limits_text(answer);
  if (fastest == nullptr) {
    return limits.empty() ? "None of them surely holds the run.\n"
                          : fmt::format("None of them surely holds the run and ends it{}.\n", limits);
  }
  const CompareRow* cheapest = answer.cheapest();
  const std::string fast = fmt::format("Fastest that fits{}: {}, {}{}\n", limits, fastest->gpu,
                                       rate_of(*fastest->prediction), run_text(answer, *fastest));
  if (cheapest == nullptr) return fast;
  const std::string cheap = fmt::format("Cheapest that fits{}: {}, {}{}\n", limits, cheapest->gpu,
                                        rate_of(*cheapest->prediction), run_text(answer, *cheapest));
  return answer.by == CompareBy::cost ? cheap + fast : fast + cheap;
}

void write_row(JsonWriter& json, const CompareAnswer& answer, const CompareRow& row) {
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
  if (row.largest_batch) json.field("largest_batch", *row.largest_batch);
  json.field("measured", name_of(row.measured)).field("pareto", row.pareto);
  if (row.price) json.field("price_per_hour", *row.price);
  if (row.cost_million_samples) json.field("cost_per_million_samples", *row.cost_million_samples);
  if (row.run_hours) json.field("run_hours", *row.run_hours);
  if (row.run_cost) json.field("run_cost", *row.run_cost);
  if (p.job) write_json(json.key("job"), *p.job);
  if (answer.deadline_hours) json.field("in_time", row.in_time);
  if (answer.budget) json.field("in_budget", row.in_budget);
  json.end_object();
}

}  // namespace

namespace {

// What stands behind a row: whether it fits, and the limits that it does not keep.
std::string remark(const CompareRow& row) {
  const FitVerdict verdict = row.prediction->memory_answer.verdict;
  std::string text(verdict == FitVerdict::fits ? "" : text_of(verdict));
  if (!row.in_time) text += text.empty() ? "too late" : ", too late";
  if (!row.in_budget) text += text.empty() ? "too dear" : ", too dear";
  return text;
}

// A column of the table, for rows that may fit.
struct CompareColumn {
  std::string heading;
  std::function<std::string(const CompareRow& row)> cell;
};

std::string or_dash(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : "-";
}

// Of an iteration, or where its length is told of the whole run: what the one says follows from the other.
std::vector<CompareColumn> time_columns(const CompareAnswer& answer) {
  const char* range = "8 of 10 within";
  if (answer.iterations > 0) {
    return {{"run", [](const CompareRow& row) { return or_dash(row.run_hours, duration_text); }},
            {range,
             [](const CompareRow& row) {
               const JobTime& job = *row.prediction->job;
               return fmt::format("{} to {}", duration_text(job.p10), duration_text(job.p90));
             }},
            {"energy", [](const CompareRow& row) { return or_dash(row.run_energy, energy_text); }}};
  }
  return {
      {"iteration",
       [](const CompareRow& row) { return fmt::format("{:.2f} ms", milliseconds(row.prediction->times.iteration)); }},
      {range, [](const CompareRow& row) {
         const Prediction& p = *row.prediction;
         return fmt::format("{:.2f} to {:.2f}", milliseconds(p.p10), milliseconds(p.p90));
       }}};
}

std::vector<CompareColumn> compare_columns(const CompareAnswer& answer) {
  const bool priced = any_has(answer, &CompareRow::price);
  const Prediction* first = first_predicted(answer);
  const bool tokens = first != nullptr && first->tokens_per_second > 0;
  std::vector<CompareColumn> columns = {{"GPU", [](const CompareRow& row) { return row.short_name; }}};
  for (CompareColumn& column : time_columns(answer)) columns.push_back(std::move(column));
  if (priced && answer.iterations > 0) {
    columns.push_back({"cost", [](const CompareRow& row) { return or_dash(row.run_cost, money_text); }});
  } else if (priced) {
    columns.push_back({"price/h", [](const CompareRow& row) { return or_dash(row.price, money_text); }});
    columns.push_back({"cost/M", [](const CompareRow& row) { return or_dash(row.cost_million_samples, money_text); }});
  }
  columns.push_back({tokens ? "tokens/s" : "samples/s", [tokens](const CompareRow& row) {
                       const Prediction& p = *row.prediction;
                       return rate_text(tokens ? p.tokens_per_second : p.samples_per_second);
                     }});
  if (answer.iterations == 0) {
    columns.push_back({"memory", [](const CompareRow& row) { return needed_text(*row.prediction); }});
  }
  if (any_has(answer, &CompareRow::largest_batch)) {
    columns.push_back(
        {"batch to", [](const CompareRow& row) { return row.largest_batch ? grouped(*row.largest_batch) : "-"; }});
  }
  if (priced) columns.push_back({"", [](const CompareRow& row) { return row.pareto ? "*" : ""; }});
  columns.push_back({"measured", [](const CompareRow& row) {
                       return row.measured == Measured::never ? "-" : std::string(name_of(row.measured));
                     }});
  columns.push_back({"", remark});
  return columns;
}

std::string compare_table(const CompareAnswer& answer) {
  const std::vector<CompareColumn> columns = compare_columns(answer);
  std::vector<std::string> heading;
  for (const CompareColumn& column : columns) heading.push_back(column.heading);
  Table table(heading);
  table.align_left(heading.size() - 1);
  for (const CompareRow& row : answer.rows) {
    if (!row.may_fit()) continue;
    std::vector<std::string> cells;
    for (const CompareColumn& column : columns) cells.push_back(column.cell(row));
    table.add(cells);
  }
  return table.text();
}

// "Does not fit: l4 (22 GiB), ...", broken into lines.
std::string wrapped_list(const std::string& title, const std::vector<std::string>& names) {
  constexpr size_t kWidth = 100;
  std::string text, line = title;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string item = " " + names[i] + (i + 1 < names.size() ? "," : "");
    if (line.size() + item.size() > kWidth) {
      text += line + "\n";
      line = " ";
    }
    line += item;
  }
  return text + line + "\n";
}

std::string others_text(const CompareAnswer& answer) {
  std::vector<std::string> too_small;
  std::map<std::string, std::vector<std::string>> unable;  // by reason
  Bytes needed;
  for (const CompareRow& row : answer.rows) {
    if (row.may_fit()) continue;
    if (!row.prediction) {
      std::string reason = row.prediction.error().message();
      if (const size_t named = reason.find(row.gpu); named != std::string::npos) {
        reason.replace(named, row.gpu.size(), "GPU");
      }
      unable[reason].push_back(row.short_name);
      continue;
    }
    needed = std::max(needed, row.prediction->memory.peak_allocated + row.prediction->context);
    too_small.push_back(fmt::format("{} ({:.0f} GiB)", row.short_name, gibibytes(row.prediction->device_memory)));
  }
  std::string text;
  if (!too_small.empty()) {
    text += wrapped_list(fmt::format("Do not fit, it takes {:.1f} GiB and more:", gibibytes(needed)), too_small);
  }
  for (const auto& [reason, names] : unable) {
    text += wrapped_list("Cannot run it:", names) + wrapped("  " + reason, "  ");
  }
  return text;
}

std::string compare_legend(const CompareAnswer& answer) {
  std::string text;
  if (any_has(answer, &CompareRow::largest_batch)) {
    text += "batch to: about the largest that fits; `forerun fit` tries it\n";
  }
  if (any_has(answer, &CompareRow::price)) text += "*: none that fits is both faster and cheaper\n";
  return text + "measured: here, op by op; elsewhere, in tables of others; the others are carried over from those\n";
}

}  // namespace

std::string to_text(const CompareAnswer& answer) {
  std::string text;
  if (const Prediction* p = first_predicted(answer); p != nullptr) text += warnings_text(*p);
  text += compare_headline(answer) + what_to_take(answer);
  const auto& rows = answer.rows;
  if (std::any_of(rows.begin(), rows.end(), [](const CompareRow& row) { return row.may_fit(); })) {
    text += "\n" + compare_table(answer) + "\n" + compare_legend(answer);
  }
  return text + others_text(answer);
}

std::string to_json(const CompareAnswer& answer) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.compare/1").field("model", answer.model);
  if (const Prediction* p = first_predicted(answer); p != nullptr) {
    json.field("batch", p->input.batch)
        .field("precision", name_of(p->setup.precision))
        .field("optimizer", name_of(p->setup.optimizer.kind));
    if (p->setup.compile != CompileMode::none) json.field("compile", name_of(p->setup.compile));
  }
  if (answer.iterations > 0) json.field("iterations", answer.iterations);
  if (!answer.currency.empty()) json.field("currency", answer.currency);
  if (answer.deadline_hours) json.field("deadline_hours", *answer.deadline_hours);
  if (answer.budget) json.field("budget", *answer.budget);
  json.key("gpus").begin_array();
  for (const CompareRow& row : answer.rows) write_row(json, answer, row);
  return json.end_array().end_object().take();
}

std::string to_csv(const CompareAnswer& answer) {
  std::string text =
      "gpu,iter_ms,iter_low_ms,iter_high_ms,gpu_ms,host_ms,bound,samples_per_second,tokens_per_second,relative_speed,"
      "peak_allocated,peak_reserved,device_memory,verdict,price_per_hour,cost_per_million_samples,run_hours,run_cost,"
      "run_energy_kwh,largest_batch,measured,pareto\n";
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
    for (const auto figure : kOptionalFigures) cells.push_back(row.*figure ? fmt::format("{}", *(row.*figure)) : "");
    cells.push_back(row.largest_batch ? fmt::format("{}", *row.largest_batch) : "");
    cells.emplace_back(name_of(row.measured));
    cells.emplace_back(row.pareto ? "true" : "false");
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
