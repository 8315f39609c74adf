#include "lab/papers/neusight/traced_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "base/csv_cells.h"
#include "base/json_file.h"
#include "base/line_reader.h"
#include "lab/papers/neusight/shape_text.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPublishedAgain = "copy the labels that the authors of NeuSight published again";
constexpr int64_t kMostLayers = 10'000;

// "<built-in method addmm of type object at 0x1>" and "<function softmax at 0x1>": addmm, softmax; names stay as they are.
std::string short_target(const std::string& target) {
  for (const char* before : {"<built-in method ", "<built-in function ", "<function "}) {
    const std::string_view beginning = before;
    if (!target.starts_with(beginning)) continue;
    const size_t end = target.find_first_of(" >", beginning.size());
    return target.substr(beginning.size(), end - beginning.size());
  }
  return target;
}

bool is_in_layer(const std::string& modules) {
  for (const char* layer : {".h.0'", ".layer.0'", ".layers.0'"}) {
    if (modules.find(layer) != std::string::npos) return true;
  }
  return false;
}

class TraceTable {
 public:
  explicit TraceTable(LineReader lines) : lines_(std::move(lines)) {}

  Result<std::vector<TracedOp>> read() {
    auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) return Error{"the file is empty", lines_.name(), kPublishedAgain};
    const auto names = csv_cells(**line);
    for (size_t i = 0; i < names.size(); ++i) columns_.emplace(names[i], i);
    for (const char* name :
         {"op", "target", "meta", "input_shapes", "input_contiguous", "fw_latency", "output_shape"}) {
      if (!columns_.contains(name))
        return Error{std::string("the column ") + name + " is missing", lines_.name(), kPublishedAgain};
    }
    std::vector<TracedOp> ops;
    while (true) {
      line = lines_.next();
      if (!line) return line.error();
      if (!*line) return ops;
      auto op = row(csv_cells(**line));
      if (!op) return op.error();
      if (op->call.starts_with("call_")) ops.push_back(std::move(*op));
    }
  }

 private:
  [[nodiscard]] std::string cell(const std::vector<std::string>& cells, const char* name) const {
    const auto found = columns_.find(name);
    return found != columns_.end() && found->second < cells.size() ? cells[found->second] : "";
  }

  [[nodiscard]] Error fault(const char* what) const {
    return {what, lines_.name() + ", line " + std::to_string(lines_.line_number()), kPublishedAgain};
  }

  [[nodiscard]] Result<TracedOp> row(const std::vector<std::string>& cells) const {
    TracedOp op{.call = cell(cells, "op"), .target = short_target(cell(cells, "target"))};
    auto inputs = shapes_in(cell(cells, "input_shapes"));
    const auto outputs = shapes_in(cell(cells, "output_shape"));
    if (!inputs || !outputs) return fault("the shapes are no lists of whole numbers");
    op.inputs = std::move(*inputs);
    if (!outputs->empty()) op.output = outputs->front();
    op.contiguous_input = !cell(cells, "input_contiguous").starts_with("[False");
    op.in_layer = is_in_layer(cell(cells, "meta"));
    double forward = 0;
    double backward = 0;
    const std::string text = cell(cells, "bw_latency");
    const bool sound = parse_cell(cell(cells, "fw_latency"), forward) && std::isfinite(forward) && forward >= 0 &&
                       (text.empty() || (parse_cell(text, backward) && std::isfinite(backward) && backward >= 0));
    if (!sound) return fault("a latency is no number");
    op.forward_us = 1e3 * forward;
    op.backward_us = 1e3 * backward;
    return op;
  }

  LineReader lines_;
  std::map<std::string, size_t, std::less<>> columns_;
};

// "bert_large-train-512-8": model, what, length, batch; nothing of other names.
std::optional<TracedRun> run_in_name(const std::string& stem) {
  std::string commas = stem;
  std::replace(commas.begin(), commas.end(), '-', ',');
  const auto parts = csv_cells(commas);
  if (parts.size() != 4 || (parts[1] != "train" && parts[1] != "inf")) return std::nullopt;
  TracedRun run{.model = parts[0], .training = parts[1] == "train"};
  if (!parse_cell(parts[2], run.length) || !parse_cell(parts[3], run.batch)) return std::nullopt;
  return run;
}

Status read_label(const fs::path& path, TracedRun& run) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file) return file.error();
  run.measured_ms = file->number("fw_latency") + file->number("bwall_latency", Sign::not_negative);
  if (!file->status().ok()) return file->status().error();
  const fs::path table = fs::path(path).replace_extension(".csv");
  if (!fs::exists(table)) return {};
  run.layers = file->integer("num_layer");
  if (!file->status().ok()) return file->status().error();
  if (run.layers < 1 || run.layers > kMostLayers)
    return Error{"num_layer is out of range", path.string(), kPublishedAgain};
  auto lines = LineReader::open(table.string());
  if (!lines) return lines.error();
  auto ops = TraceTable(std::move(*lines)).read();
  if (!ops) return ops.error();
  run.ops = std::move(*ops);
  return {};
}

}  // namespace

Result<std::vector<TracedOp>> traced_ops_from_text(std::string_view text, const std::string& name) {
  return TraceTable(LineReader::from_text(text, name)).read();
}

Result<std::vector<TracedRun>> read_traced_runs(const std::string& folder) {
  std::vector<fs::path> labels;
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(folder) / "label", code)) {
    if (entry.path().extension() == ".json" && run_in_name(entry.path().stem().string()))
      labels.push_back(entry.path());
  }
  if (code || labels.empty()) {
    return Error{"no labels of NeuSight are there", (fs::path(folder) / "label").string(), kPublishedAgain};
  }
  std::sort(labels.begin(), labels.end());
  std::vector<TracedRun> runs;
  for (const fs::path& label : labels) {
    TracedRun run = *run_in_name(label.stem().string());
    run.gpu = label.parent_path().filename().string();
    if (const Status status = read_label(label, run); !status.ok()) return status.error();
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace forerun
