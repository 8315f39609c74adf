#include "lab/papers/published_runs.h"

#include <cmath>
#include <map>

#include "base/csv_cells.h"
#include "base/line_reader.h"

namespace forerun::scale {
namespace {

constexpr int64_t kMegatronSequence = 2048;
constexpr int64_t kMegatronVocab = 51200;
constexpr MegatronRun kMegatronRuns[] = {
    {"1.7 B", 24, 2304, 24, 1, 1, 32, 512, 137},          {"3.6 B", 32, 3072, 30, 2, 1, 64, 512, 138},
    {"7.5 B", 32, 4096, 36, 4, 1, 128, 512, 142},         {"18.4 B", 48, 6144, 40, 8, 1, 256, 1024, 135},
    {"39.1 B", 64, 8192, 48, 8, 2, 512, 1536, 138},       {"76.1 B", 80, 10240, 60, 8, 4, 1024, 1792, 140},
    {"145.6 B", 96, 12288, 80, 8, 8, 1536, 2304, 148},    {"310.1 B", 128, 16384, 96, 8, 16, 1920, 2160, 155},
    {"529.6 B", 128, 20480, 105, 8, 35, 2520, 2520, 163}, {"1008 B", 160, 25600, 128, 8, 64, 3072, 3072, 163}};

struct FoundryShape {
  const char* name;
  int64_t hidden, layers, heads;
};
constexpr FoundryShape kFoundryShapes[] = {{"125m", 768, 12, 12}, {"350m", 1024, 24, 16}, {"760m", 1536, 24, 12},
                                           {"1b", 2048, 24, 16},  {"3b", 2560, 32, 20},   {"7b", 4096, 32, 32},
                                           {"13b", 5120, 40, 40}, {"30b", 7168, 48, 56},  {"70b", 8192, 80, 64}};
constexpr int64_t kFoundryVocab = 50368;
constexpr const char* kFoundryRemedy = "take benchmark.csv as made of LLM Foundry's published tables";

const FoundryShape* foundry_shape(const std::string& name) {
  for (const FoundryShape& shape : kFoundryShapes) {
    if (name == shape.name) return &shape;
  }
  return nullptr;
}

const std::map<std::string, std::string, std::less<>> kFoundryGpus = {
    {"a100_40gb", "a100-40gb"}, {"a100_80gb", "a100-80gb"}, {"h100_80gb", "h100"}};
const std::map<std::string, int, std::less<>> kFoundryShards = {
    {"FULL_SHARD", 3}, {"SHARD_GRAD_OP", 2}, {"NO_SHARD", 0}};

class FoundryReader {
 public:
  explicit FoundryReader(LineReader lines) : lines_(std::move(lines)) {}

  Result<FoundryRuns> read() {
    FoundryRuns result;
    bool header = true;
    while (true) {
      auto line = lines_.next();
      if (!line) return line.error();
      if (!*line) break;
      if (is_blank(**line)) continue;
      const std::vector<std::string> cells = csv_cells(**line);
      if (header) {
        for (size_t i = 0; i < cells.size(); ++i) columns_.try_emplace(cells[i], i);
        header = false;
        continue;
      }
      const auto status = add(cells, result);
      if (!status) return status.error();
    }
    if (result.runs.empty()) return Error{"the table has no runs", lines_.name(), kFoundryRemedy};
    return result;
  }

 private:
  [[nodiscard]] std::string cell(const std::vector<std::string>& cells, const char* name) const {
    const auto found = columns_.find(name);
    return found != columns_.end() && found->second < cells.size() ? cells[found->second] : "";
  }

  bool number(const std::vector<std::string>& cells, const char* name, int64_t& value) const {
    return parse_cell(cell(cells, name), value) && value >= 1 && value < (int64_t{1} << 40);
  }

  Status add(const std::vector<std::string>& cells, FoundryRuns& result) const {
    FoundryRun run;
    run.model = cell(cells, "Model");
    const auto gpu = kFoundryGpus.find(cell(cells, "GPU"));
    const auto shards = kFoundryShards.find(cell(cells, "Sharding Strategy"));
    const bool narrow = cell(cells, "Precision").find("fp8") != std::string::npos;
    if (narrow || foundry_shape(run.model) == nullptr || gpu == kFoundryGpus.end() || shards == kFoundryShards.end()) {
      ++result.passed_over;
      return {};
    }
    run.gpu = gpu->second;
    run.zero = shards->second;
    run.checkpoint = cell(cells, "Activation Checkpointing") == "True";
    int64_t tokens = 0;
    if (!number(cells, "SeqLen (T)", run.sequence) || !number(cells, "# GPUs", run.gpus) ||
        !number(cells, "MicroBatchSize", run.micro_batch) || !number(cells, "GlobalBatchSize", run.batch) ||
        !number(cells, "Throughput (T/s)", tokens)) {
      return Error{"a number is missing", lines_.name() + ", line " + std::to_string(lines_.line_number()),
                   kFoundryRemedy};
    }
    run.tokens_per_second = static_cast<double>(tokens);
    if (run.batch % (run.gpus * run.micro_batch) != 0) {
      ++result.passed_over;
      return {};
    }
    result.runs.push_back(run);
    return {};
  }

  LineReader lines_;
  std::map<std::string, size_t, std::less<>> columns_;
};

}  // namespace

std::span<const MegatronRun> megatron_runs() { return kMegatronRuns; }

Transformer transformer_of(const MegatronRun& run) {
  Transformer t;
  t.name = run.name;
  t.layers = run.layers;
  t.hidden = run.hidden;
  t.heads = t.kv_heads = run.heads;
  t.inner = 4 * run.hidden;
  t.vocab = kMegatronVocab;
  t.positions = t.sequence = kMegatronSequence;
  return t;
}

double step_seconds(const MegatronRun& run) {
  const auto h = static_cast<double>(run.hidden);
  const auto l = static_cast<double>(run.layers);
  const double s = kMegatronSequence;
  const double flops =
      96 * static_cast<double>(run.batch) * s * l * h * h * (1 + s / (6 * h) + kMegatronVocab / (16 * l * h));
  return flops / (run.teraflops * 1e12 * static_cast<double>(run.gpus));
}

Result<FoundryRuns> read_foundry_runs(const std::string& path) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return FoundryReader(std::move(*lines)).read();
}

Result<FoundryRuns> foundry_runs_from_text(std::string_view text, const std::string& name) {
  return FoundryReader(LineReader::from_text(text, name)).read();
}

Result<Transformer> transformer_of(const FoundryRun& run) {
  const FoundryShape* shape = foundry_shape(run.model);
  if (shape == nullptr) return Error{"no MPT model is called '" + run.model + "'", "", kFoundryRemedy};
  Transformer t;
  t.name = run.model;
  t.layers = shape->layers;
  t.hidden = shape->hidden;
  t.heads = t.kv_heads = shape->heads;
  t.inner = 4 * shape->hidden;
  t.vocab = kFoundryVocab;
  t.positions = t.sequence = run.sequence;
  t.biases = false;
  return t;
}

}  // namespace forerun::scale
