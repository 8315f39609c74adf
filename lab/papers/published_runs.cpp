#include "lab/papers/published_runs.h"

#include <cmath>
#include <map>

#include "base/csv_cells.h"
#include "base/data_dir.h"
#include "base/line_reader.h"

namespace forerun::scale {
namespace {

constexpr const char* kFoundryRemedy = "take benchmark.csv as made of LLM Foundry's published tables";

const std::map<std::string, std::string, std::less<>> kFoundryGpus = {
    {"a100_40gb", "a100-40gb"}, {"a100_80gb", "a100-80gb"}, {"h100_80gb", "h100"}};
const std::map<std::string, int, std::less<>> kFoundryShards = {
    {"FULL_SHARD", 3}, {"SHARD_GRAD_OP", 2}, {"NO_SHARD", 0}};

class FoundryReader {
 public:
  FoundryReader(LineReader lines, const MptModels& models) : lines_(std::move(lines)), models_(models) {}

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
    if (narrow || models_.find(run.model) == nullptr || gpu == kFoundryGpus.end() || shards == kFoundryShards.end()) {
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
  const MptModels& models_;
  std::map<std::string, size_t, std::less<>> columns_;
};

void check_table(JsonObject& table, const char* schema, const char* source) {
  if (table.text("schema") != schema) table.fail("schema", std::string("must be ") + schema);
  table.text(source);
}

Result<JsonObject> read_paper(const char* file) {
  const auto data = data_dir();
  if (!data) return data.error();
  return JsonObject::read(*data / "papers" / file);
}

MegatronRun megatron_run(JsonObject& row) {
  MegatronRun run{.name = row.text("name"),
                  .heads = row.integer("heads"),
                  .hidden = row.integer("hidden"),
                  .layers = row.integer("layers"),
                  .tensor = row.integer("tensor"),
                  .pipeline = row.integer("pipeline"),
                  .gpus = row.integer("gpus"),
                  .batch = row.integer("batch"),
                  .micro_batch = row.integer("micro_batch"),
                  .chunks = row.integer("chunks"),
                  .overlap = row.flag("overlap"),
                  .teraflops = row.number("teraflops_per_gpu")};
  if (run.gpus % run.tensor != 0 || run.gpus / run.tensor % run.pipeline != 0) {
    row.fail("gpus", "must be a multiple of tensor x pipeline", "compare with the paper's table");
  } else if (run.batch % (run.gpus / run.tensor / run.pipeline * run.micro_batch) != 0) {
    row.fail("batch", "must be a multiple of replicas x micro_batch", "compare with the authors' scripts");
  }
  return run;
}

}  // namespace

Result<MegatronTable> megatron_table(JsonObject file) {
  check_table(file, "forerun.papers.megatron/1", "paper");
  MegatronTable table{.gpu = file.text("gpu"),
                      .network = file.text("network"),
                      .sequence = file.integer("sequence"),
                      .vocab = file.integer("vocabulary")};
  for (JsonObject& row : file.objects("runs")) table.runs.push_back(megatron_run(row));
  if (table.runs.empty()) file.fail("runs", "the table has no runs");
  if (const Status status = file.status(); !status) return status.error();
  return table;
}

Result<MegatronTable> megatron_table() {
  auto file = read_paper("megatron.json");
  if (!file) return file.error();
  return megatron_table(std::move(*file));
}

Transformer transformer_of(const MegatronRun& run, const MegatronTable& table) {
  Transformer t;
  t.name = run.name;
  t.layers = run.layers;
  t.hidden = run.hidden;
  t.heads = t.kv_heads = run.heads;
  t.inner = 4 * run.hidden;
  t.vocab = table.vocab;
  t.positions = t.sequence = table.sequence;
  return t;
}

Plan plan_of(const MegatronRun& run) {
  Plan plan;
  plan.tensor = run.tensor;
  plan.pipeline = run.pipeline;
  plan.chunks = run.chunks;
  plan.data = run.gpus / run.tensor / run.pipeline;
  plan.micro_batch = run.micro_batch;
  plan.micro_batches = run.batch / (plan.data * run.micro_batch);
  plan.checkpoint = true;
  plan.overlap = run.overlap;
  return plan;
}

double step_seconds(const MegatronRun& run, const MegatronTable& table) {
  const auto h = static_cast<double>(run.hidden);
  const auto l = static_cast<double>(run.layers);
  const auto s = static_cast<double>(table.sequence);
  const auto vocab = static_cast<double>(table.vocab);
  const double flops = 96 * static_cast<double>(run.batch) * s * l * h * h * (1 + s / (6 * h) + vocab / (16 * l * h));
  return flops / (run.teraflops * 1e12 * static_cast<double>(run.gpus));
}

const MptModels::Shape* MptModels::find(const std::string& name) const {
  for (const Shape& shape : shapes) {
    if (name == shape.name) return &shape;
  }
  return nullptr;
}

Result<MptModels> mpt_models(JsonObject file) {
  check_table(file, "forerun.papers.mpt/1", "source");
  MptModels models{.vocab = file.integer("vocabulary")};
  for (JsonObject& row : file.objects("models")) {
    MptModels::Shape shape{.name = row.text("name"),
                           .hidden = row.integer("hidden"),
                           .layers = row.integer("layers"),
                           .heads = row.integer("heads")};
    if (models.find(shape.name) != nullptr) row.fail("name", "'" + shape.name + "' is there twice", "keep one of them");
    models.shapes.push_back(std::move(shape));
  }
  if (const Status status = file.status(); !status) return status.error();
  return models;
}

Result<MptModels> mpt_models() {
  auto file = read_paper("mpt.json");
  if (!file) return file.error();
  return mpt_models(std::move(*file));
}

Result<double> vtrain_error(JsonObject file) {
  check_table(file, "forerun.papers.vtrain/1", "paper");
  const double error = file.number("one_machine_error");
  if (error > 1) file.fail("one_machine_error", "an error is a share of 1", "divide per cent by 100");
  if (const Status status = file.status(); !status) return status.error();
  return error;
}

Result<double> vtrain_error() {
  auto file = read_paper("vtrain.json");
  if (!file) return file.error();
  return vtrain_error(std::move(*file));
}

Result<FoundryRuns> read_foundry_runs(const std::string& path, const MptModels& models) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return FoundryReader(std::move(*lines), models).read();
}

Result<FoundryRuns> foundry_runs_from_text(std::string_view text, const std::string& name, const MptModels& models) {
  return FoundryReader(LineReader::from_text(text, name), models).read();
}

Result<Transformer> transformer_of(const FoundryRun& run, const MptModels& models) {
  const MptModels::Shape* shape = models.find(run.model);
  if (shape == nullptr) return Error{"no MPT model is called '" + run.model + "'", "", kFoundryRemedy};
  Transformer t;
  t.name = run.model;
  t.layers = shape->layers;
  t.hidden = shape->hidden;
  t.heads = t.kv_heads = shape->heads;
  t.inner = 4 * shape->hidden;
  t.vocab = models.vocab;
  t.positions = t.sequence = run.sequence;
  t.biases = false;
  return t;
}

}  // namespace forerun::scale
