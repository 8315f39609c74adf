#include "lab/papers/vtrain/megatron_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>

#include "base/csv_cells.h"
#include "base/line_reader.h"

namespace forerun {
namespace {

constexpr int64_t kLargestField = int64_t{1} << 40;

struct IntegerColumn {
  const char* name;
  int64_t MegatronRow::*field;
};
constexpr IntegerColumn kMegatronColumns[] = {{"# GPUs", &MegatronRow::gpus},
                                              {"global batch", &MegatronRow::global_batch},
                                              {"micro batch", &MegatronRow::micro_batch},
                                              {"hidden size", &MegatronRow::hidden},
                                              {"attention heads", &MegatronRow::heads},
                                              {"# layers", &MegatronRow::layers},
                                              {"sequence length", &MegatronRow::sequence},
                                              {"tensor parallelism", &MegatronRow::tensor},
                                              {"data parallelism", &MegatronRow::data},
                                              {"pipeline parallelism", &MegatronRow::pipeline}};
constexpr const char* kTimeColumn = "iteration time (ms)";
constexpr const char* kTableRemedy = "take the file as the authors of vTrain published it";

class MegatronReader {
 public:
  explicit MegatronReader(LineReader lines) : lines_(std::move(lines)) {}

  Result<std::vector<MegatronRow>> read() {
    std::vector<MegatronRow> rows;
    bool header = true;
    while (true) {
      auto line = lines_.next();
      if (!line) return line.error();
      if (!*line) break;
      if (forerun::is_blank(**line)) continue;
      if (header) {
        if (const Status status = read_header(**line); !status) return status.error();
        header = false;
        continue;
      }
      auto row = read_row(csv_cells(**line));
      if (!row) return row.error();
      rows.push_back(*row);
    }
    if (rows.empty()) return Error{"the table has no rows", lines_.name(), kTableRemedy};
    return rows;
  }

 private:
  [[nodiscard]] Error fault(const std::string& what) const {
    return {what, lines_.name() + ", line " + std::to_string(lines_.line_number()), kTableRemedy};
  }

  Status read_header(std::string_view line) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    const std::vector<std::string> names = csv_cells(line);
    for (size_t i = 0; i < names.size(); ++i) columns_.try_emplace(names[i], i);
    for (const IntegerColumn& column : kMegatronColumns) {
      if (!columns_.contains(column.name)) return fault(std::string("there is no column '") + column.name + "'");
    }
    if (!columns_.contains(kTimeColumn)) return fault(std::string("there is no column '") + kTimeColumn + "'");
    return {};
  }

  [[nodiscard]] Result<MegatronRow> read_row(const std::vector<std::string>& cells) const {
    MegatronRow row;
    for (const IntegerColumn& column : kMegatronColumns) {
      const size_t at = columns_.find(column.name)->second;
      int64_t value = 0;
      if (at >= cells.size() || !parse_cell(cells[at], value) || value < 1 || value > kLargestField) {
        return fault(std::string("'") + column.name + "' is missing or no whole number from 1");
      }
      row.*column.field = value;
    }
    const size_t at = columns_.find(kTimeColumn)->second;
    double ms = 0;
    if (at >= cells.size() || !parse_cell(cells[at], ms) || !std::isfinite(ms) || ms <= 0 || ms > 1e9) {
      return fault("the iteration time is missing or no number above 0");
    }
    row.iteration = Nanoseconds(std::llround(1e6 * ms));
    return row;
  }

  LineReader lines_;
  std::map<std::string, size_t, std::less<>> columns_;
};

// The number in AR_GPU8_1M_1024M_LUT; 0 where the name is another.
int64_t ranks_of(const std::string& name) {
  constexpr std::string_view kPrefix = "AR_GPU";
  if (!name.starts_with(kPrefix)) return 0;
  int64_t ranks = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), ranks);
  return ranks;
}

Status read_table(const std::string& path, int64_t ranks, std::vector<AllReduceRow>& rows) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  bool header = true;
  while (true) {
    auto line = lines->next();
    if (!line) return line.error();
    if (!*line) return {};
    if (header || forerun::is_blank(**line)) {
      header = false;
      continue;
    }
    const std::vector<std::string> cells = csv_cells(**line);
    int64_t bytes = 0;
    int64_t time = 0;
    if (cells.size() < 4 || !parse_cell(cells[0], bytes) || !parse_cell(cells[3], time) || bytes < 1 || time < 1) {
      return Error{"size or time is missing", path + ", line " + std::to_string(lines->line_number()), kTableRemedy};
    }
    rows.push_back({ranks, Bytes(bytes), Nanoseconds(time)});
  }
}

}  // namespace

Result<std::vector<MegatronRow>> read_megatron_rows(const std::string& path) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return MegatronReader(std::move(*lines)).read();
}

Result<std::vector<MegatronRow>> megatron_rows_from_text(std::string_view text, const std::string& name) {
  return MegatronReader(LineReader::from_text(text, name)).read();
}

Result<std::vector<AllReduceRow>> read_all_reduce_tables(const std::string& folder) {
  std::error_code problem;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    if (ranks_of(entry.path().filename().string()) > 0) files.push_back(entry.path());
  }
  if (files.empty()) return Error{"no all-reduce table (AR_GPU*) is there", folder, kTableRemedy};
  std::sort(files.begin(), files.end());
  std::vector<AllReduceRow> rows;
  for (const auto& file : files) {
    const Status status = read_table(file.string(), ranks_of(file.filename().string()), rows);
    if (!status) return status.error();
  }
  return rows;
}

}  // namespace forerun
