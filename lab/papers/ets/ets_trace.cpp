#include "lab/papers/ets/ets_trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace forerun {
namespace {

constexpr const char* kNames[] = {"trace", "op",  "dir",       "params", "flops", "bytes",
                                  "space", "seq", "kduration", "batch",  "h",     "input_type"};
constexpr double kNanosecondsPerMicrosecond = 1000;

std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  for (size_t begin = 0;;) {
    const size_t end = line.find(separator, begin);
    cells.push_back(line.substr(begin, end - begin));
    if (end == std::string_view::npos) return cells;
    begin = end + 1;
  }
}

// A finite number that takes up the whole cell.
std::optional<double> number(std::string_view cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// "16|3|7": the first 30.
bool parse_parameters(std::string_view cell, std::array<float, EtsOp::kParameters>& into) {
  if (cell.empty()) return true;
  const auto parts = cells_of(cell, '|');
  for (size_t i = 0; i < std::min(parts.size(), into.size()); ++i) {
    const auto value = number(parts[i]);
    if (!value) return false;
    into[i] = static_cast<float>(*value);
  }
  return true;
}

}  // namespace

Result<EtsTraceReader> EtsTraceReader::open(const std::string& path) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return start(std::move(*lines));
}

Result<EtsTraceReader> EtsTraceReader::from_text(std::string_view text, const std::string& name) {
  return start(LineReader::from_text(text, name));
}

Result<EtsTraceReader> EtsTraceReader::start(LineReader lines) {
  EtsTraceReader reader(std::move(lines));
  if (const Status status = reader.read_heading(); !status.ok()) return status.error();
  return reader;
}

Error EtsTraceReader::fault(const std::string& what) const {
  return {what, lines_.name() + ", line " + std::to_string(lines_.line_number()), "download the file again"};
}

Status EtsTraceReader::read_heading() {
  const auto line = lines_.next();
  if (!line) return line.error();
  if (!*line) return Error{"the file is empty", lines_.name(), "download the file again"};
  const auto names = cells_of(**line, ',');
  width_ = names.size();
  for (size_t i = 0; i < kColumns; ++i) {
    const auto found = std::find(names.begin(), names.end(), kNames[i]);
    if (found == names.end()) {
      return Error{std::string("there is no column '") + kNames[i] + "'", lines_.name(),
                   "name a file of traces as the authors of ETS published them"};
    }
    columns_[i] = static_cast<size_t>(found - names.begin());
  }
  return {};
}

Result<EtsTraceReader::Row> EtsTraceReader::parse(std::string_view line) const {
  const auto cells = cells_of(line, ',');
  if (cells.size() != width_) {
    return fault("the row has " + std::to_string(cells.size()) + " cells, the heading " + std::to_string(width_));
  }
  std::array<double, kColumns> values{};
  for (size_t i = 0; i < kColumns; ++i) {
    if (i == kTrace || i == kParameters) continue;
    const auto value = number(cells[columns_[i]]);
    if (!value) return fault(std::string("'") + kNames[i] + "' is no number");
    values[i] = *value;
  }
  Row row{.trace = std::string(cells[columns_[kTrace]]),
          .batch = values[kBatch],
          .height = values[kHeight],
          .optimizer = values[kSequence] == -1};
  const double direction = values[kDirection];
  const double type = values[kType];
  if (row.trace.empty()) return fault("the trace has no name");
  if (direction != 1 && direction != 2 && direction != 3) return fault("'dir' is none of 1, 2 and 3");
  if (type != 1 && type != 2 && type != 3) return fault("'input_type' is none of 1, 2 and 3");
  if (values[kDuration] < 0) return fault("'kduration' is negative");
  if (std::abs(values[kOp]) > 1e9) return fault("'op' is out of range");
  row.op.type = static_cast<int32_t>(values[kOp]);
  row.op.phase = static_cast<Phase>(static_cast<int>(direction) - 1);
  row.op.dtype = type == 1 ? DType::float32 : type == 2 ? DType::float16 : DType::float64;
  row.op.flops = values[kFlops];
  row.op.bytes = values[kBytes];
  if (!parse_parameters(cells[columns_[kParameters]], row.op.parameters))
    return fault("'params' is no list of numbers");
  row.op.gpu_us = values[kDuration] / kNanosecondsPerMicrosecond;
  row.op.gap_us = std::max(values[kSpace], 0.0) / kNanosecondsPerMicrosecond;
  return row;
}

Result<std::optional<EtsTraceReader::Row>> EtsTraceReader::next_row() {
  if (ended_) return std::optional<Row>();
  const auto line = lines_.next();
  if (!line) {
    ended_ = true;
    return line.error();
  }
  if (!*line) {
    ended_ = true;
    return std::optional<Row>();
  }
  auto row = parse(**line);
  if (!row) {
    ended_ = true;
    return row.error();
  }
  return std::optional<Row>(std::move(*row));
}

Result<std::optional<EtsTrace>> EtsTraceReader::next() {
  std::optional<EtsTrace> trace;
  while (true) {
    if (!ahead_) {
      auto row = next_row();
      if (!row) return row.error();
      ahead_ = std::move(*row);
    }
    if (!ahead_ || (trace && ahead_->trace != trace->id)) {
      if (trace && trace->ops.empty() && ahead_) {
        trace.reset();
        continue;
      }
      return trace && trace->ops.empty() ? std::optional<EtsTrace>() : trace;
    }
    if (!trace) {
      trace = EtsTrace{.id = ahead_->trace,
                       .model = ahead_->trace.substr(0, ahead_->trace.rfind('.')),
                       .batch = ahead_->batch,
                       .height = ahead_->height};
    }
    if (!ahead_->optimizer) trace->ops.push_back(ahead_->op);
    ahead_.reset();
  }
}

}  // namespace forerun
