#include "report/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/table.h"

namespace forerun {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The row with the most samples a second of those that fit; nothing where none does.
const SweepRow* best_of(const std::vector<SweepRow>& rows) {
  const SweepRow* best = nullptr;
  for (const SweepRow& row : rows) {
    if (!row.prediction || !row.prediction->fits) continue;
    if (best == nullptr || row.prediction->samples_per_second > best->prediction->samples_per_second) best = &row;
  }
  return best;
}

std::string setting_text(const std::vector<std::string>& axes, const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < axes.size(); ++i) parts.push_back(axes[i] + "=" + values[i]);
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string csv_values(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += csv_cell(value) + ",";
  return text;
}

}  // namespace

std::string sweep_text(const std::vector<std::string>& axes, const std::vector<SweepRow>& rows) {
  std::vector<std::string> heading = axes;
  for (const char* column : {"iteration", "8 of 10 within", "samples/s", "GPU busy", "memory", ""}) {
    heading.emplace_back(column);
  }
  Table table(heading);
  table.align_left(heading.size() - 1);
  const SweepRow* best = best_of(rows);
  for (const SweepRow& row : rows) {
    std::vector<std::string> cells = row.values;
    if (!row.prediction) {
      cells.resize(heading.size() - 1, "-");
      cells.push_back(row.prediction.error().what);
    } else {
      const Prediction& p = *row.prediction;
      const double busy = static_cast<double>(p.times.gpu_busy.value) / static_cast<double>(p.times.iteration.value);
      cells.insert(cells.end(), {fmt::format("{:.2f} ms", milliseconds(p.times.iteration)),
                                 fmt::format("{:.2f} to {:.2f}", milliseconds(p.least), milliseconds(p.most)),
                                 grouped(static_cast<int64_t>(p.samples_per_second)), percent(busy),
                                 fmt::format("{:.2f} GiB", gibibytes(p.memory.peak_reserved + p.context)),
                                 !p.fits        ? "does not fit"
                                 : &row == best ? "fastest"
                                                : ""});
    }
    table.add(cells);
  }
  const bool built = std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return row.prediction.ok(); });
  std::string last = "None of them fits.\n";
  if (!built && !rows.empty()) {
    last = fmt::format("None of them could be built: {}\n", rows.front().prediction.error().message());
  } else if (best != nullptr) {
    last = fmt::format("Fastest that fits: {}, {} samples/s\n", setting_text(axes, best->values),
                       grouped(static_cast<int64_t>(best->prediction->samples_per_second)));
  }
  return table.text() + "\n" + last;
}

std::string sweep_json(const std::vector<std::string>& axes, const std::vector<std::string>& values,
                       const Result<Prediction>& prediction) {
  OrderedJson line;
  for (size_t i = 0; i < axes.size(); ++i) line["sweep"][axes[i]] = values[i];
  if (!prediction) {
    line["error"] = prediction.error().message();
    return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
  line.update(OrderedJson::parse(to_json(*prediction)));
  return line.dump();
}

std::string sweep_csv_header(const std::vector<std::string>& axes) { return csv_values(axes) + csv_header(); }

std::string sweep_csv(const std::vector<std::string>& values, const Prediction& prediction) {
  return csv_values(values) + to_csv(prediction);
}

}  // namespace forerun
