#include "lab/papers/ddl_benchmark/throughput_table.h"

#include <array>
#include <cmath>
#include <map>

#include "base/csv_cells.h"
#include "base/line_reader.h"

namespace forerun {
namespace {

constexpr std::array<const char*, 6> kThroughputColumns = {"dnn",    "bs_per_gpu", "connection",
                                                           "method", "gpus",       "samples_per_s"};

Result<std::vector<ThroughputRow>> read_rows(LineReader lines) {
  const auto fault = [&](const std::string& what) {
    return Error{what, lines.name() + ", line " + std::to_string(lines.line_number()),
                 "give rows as " + std::string("dnn,bs_per_gpu,connection,method,gpus,samples_per_s")};
  };
  std::map<std::string, size_t> columns;
  std::vector<ThroughputRow> rows;
  while (true) {
    const auto line = lines.next();
    if (!line) return line.error();
    if (!line->has_value()) break;
    if (forerun::is_blank(**line)) continue;
    const std::vector<std::string> cells = csv_cells(**line);
    if (columns.empty()) {
      for (size_t i = 0; i < cells.size(); ++i) columns.emplace(cells[i], i);
      for (const char* name : kThroughputColumns) {
        if (!columns.contains(name)) return fault(std::string("the column ") + name + " is missing");
      }
      continue;
    }
    std::array<std::string, kThroughputColumns.size()> own;
    for (size_t i = 0; i < own.size(); ++i) {
      const size_t at = columns.at(kThroughputColumns[i]);
      if (at >= cells.size()) return fault(std::string("no ") + kThroughputColumns[i]);
      own[i] = cells[at];
    }
    ThroughputRow row{own[0], own[2], own[3]};
    constexpr int64_t kMost = 1 << 20;
    if (!parse_cell(own[1], row.batch) || row.batch < 1 || row.batch > kMost) return fault("no batch size");
    if (!parse_cell(own[4], row.gpus) || row.gpus < 1 || row.gpus > kMost) return fault("no number of GPUs");
    if (!parse_cell(own[5], row.samples_per_second) || !std::isfinite(row.samples_per_second) ||
        row.samples_per_second <= 0) {
      return fault("the throughput is no number above 0");
    }
    rows.push_back(std::move(row));
  }
  if (columns.empty()) return fault("the file is empty");
  return rows;
}

}  // namespace

Result<std::vector<ThroughputRow>> read_throughputs(const std::string& path) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return read_rows(std::move(*lines));
}

Result<std::vector<ThroughputRow>> throughputs_from_text(std::string_view text, const std::string& name) {
  return read_rows(LineReader::from_text(text, name));
}

}  // namespace forerun
