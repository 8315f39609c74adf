#include "predict/predict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/line_reader.h"
#include "graph/op_modules.h"
#include "report/prediction.h"

namespace forerun {
namespace {

const std::string kStarter = FORERUN_DATA_DIR "/h200/first-starter.jsonl.zst";

const CostModels& cost_models() {
  static const CostModels loaded = [] {
    Result<CostModels> result = load_cost_models();
    CHECK(result.ok(), result.error().message());
    return std::move(*result);
  }();
  return loaded;
}

Device gpu(const std::string& name) { return *cost_models().devices.find(name); }

Prediction predicted(const ModelRequest& request, const std::string& device = "h200") {
  const Result<TrainingRun> run = build_run(request, gpu(device));
  EXPECT_TRUE(run.ok()) << run.error().message();
  return predict(*run, gpu(device), cost_models());
}

std::string in_full(const Prediction& p) { return to_text(p, {.details = true}); }

ModelRequest request(const std::string& model, int64_t batch) { return {.model = model, .batch = batch}; }

TEST(Predict, AnswersForAModel) {
  const Prediction p = predicted(request("resnet50", 64));
  EXPECT_EQ(p.parameters, 25557032);
  EXPECT_EQ(p.setup.optimizer.kind, OptimizerKind::sgd);
  EXPECT_GT(p.times.iteration.value, 0);
  EXPECT_GE(p.times.iteration, p.times.gpu_busy);
  EXPECT_EQ(p.times.phases[0] + p.times.phases[1] + p.times.phases[2], p.times.iteration);
  EXPECT_NEAR(p.samples_per_second, 64 / (milliseconds(p.times.iteration) / 1e3), 1e-6);
  EXPECT_EQ(p.tokens_per_second, 0);
  EXPECT_TRUE(p.fits);
  EXPECT_TRUE(p.unknown_ops.empty());
  EXPECT_EQ(p.costliest_ops.size(), 10U);
  EXPECT_EQ(p.costliest_modules.size(), 10U);
  const Bytes parts = p.memory.parameters + p.memory.gradients + p.memory.optimizer_state + p.memory.activations +
                      p.memory.temporaries + p.memory.inputs + p.memory.buffers + p.memory.workspaces;
  EXPECT_EQ(parts, p.memory.peak_allocated);
}

TEST(Predict, QuantizedWeightsTakeTheBytesTheyTake) {
  ModelRequest asked = request("meta-llama/Llama-3.1-8B", 1);
  asked.setup.precision = Precision::bf16;
  asked.setup.lora.rank = 16;
  asked.setup.quantize.format = WeightFormat::nf4;
  const Result<TrainingRun> run = build_run(asked, gpu("h200"));
  ASSERT_TRUE(run.ok()) << run.error().message();
  int64_t packed = 0;
  int64_t scales = 0;
  int64_t half = 0;
  int64_t adapters = 0;
  for (const Storage& storage : run->graph.storages()) {
    if (storage.root != Root::parameter && storage.root != Root::buffer) continue;
    const std::string& name = run->graph.names()[storage.root_name];
    const bool projection = name.find("_proj") != std::string::npos;
    int64_t& sum = name.find("lora_") != std::string::npos     ? adapters
                   : name.find(".absmax") != std::string::npos ? scales
                   : projection && name.ends_with(".weight")   ? packed
                                                               : half;
    if (storage.root == Root::parameter || &sum == &scales) sum += storage.bytes.value;
  }
  // Queries and outputs 4096 x 4096, keys and values 1024 x 4096, three of 14336 x 4096, 32 times.
  const int64_t weights = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096LL);
  EXPECT_EQ(packed, weights / 2);
  EXPECT_EQ(scales, weights / 64 * 4);
  EXPECT_EQ(half, 2 * (2 * 128256 * 4096LL + 65 * 4096));  // embedding, head, norms
  EXPECT_EQ(adapters, 4 * 32 * 16 * (2 * 4096 + 4096 + 1024LL));

  const Prediction plain = predicted(request("gpt2_small", 4));
  ModelRequest small = request("gpt2_small", 4);
  small.setup.lora.rank = 4;
  small.setup.quantize.format = WeightFormat::nf4;
  const Prediction p = predicted(small);
  EXPECT_TRUE(p.unknown_ops.empty());
  EXPECT_TRUE(p.out_of_distribution.contains("bitsandbytes.dequantize_4bit.default"));
  const auto width = [](const Prediction& of) {
    return static_cast<double>(of.p90.value) / static_cast<double>(of.times.iteration.value);
  };
  EXPECT_GT(width(p), width(plain)) << "kernels that were never measured";
  EXPECT_NE(in_full(p).find("bitsandbytes"), std::string::npos);
  EXPECT_NE(in_full(p).find("nf4 weights"), std::string::npos);
}

TEST(Predict, TextIsOneScreenAndBeginsWithTheVerdict) {
  const struct {
    const char* model;
    int64_t batch;
    const char* device;
    const char* begins;
  } cases[] = {{"resnet50", 32, "h200", "fits, "},
               {"resnet50", 4096, "l4", "DOES NOT FIT, at least "},
               {"meta-llama/Llama-3.1-8B", 1, "h200", "DOES NOT FIT, at least "},
               {"mixtral-8x7b-v0.1", 1, "mi300x", "DOES NOT FIT, "},
               {"densenet121", 8, "t4", "fits, "}};
  for (const auto& asked : cases) {
    const std::string text = to_text(predicted(request(asked.model, asked.batch), asked.device));
    EXPECT_EQ(text.find(asked.begins), 0U) << text;
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25) << text;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, 100U) << text.substr(begin, end - begin);
      begin = end + 1;
    }
    EXPECT_EQ(text.find("\x1b"), std::string::npos);  // colours are for terminals
  }
}

TEST(Predict, FoldsLayersOfAList) {
  const Prediction p = predicted(request("gpt2_small", 4));
  ASSERT_FALSE(p.costliest_layers.empty());
  int64_t ops = 0;
  for (const CostShare& row : p.costliest_modules) {
    if (!row.name.empty()) ops = std::max(ops, row.count);
  }
  for (const CostShare& row : p.costliest_layers) {
    EXPECT_EQ(folded_module(row.name), row.name);
    if (row.name.find('*') != std::string::npos) {
      EXPECT_GT(row.count, ops) << row.name;
    }
  }
}

TEST(Predict, ALibrarysLoopWaitsCopiesAndKeepsGradients) {
  const auto in = [](TrainingLoop loop, int64_t accumulate = 1) {
    ModelRequest asked = request("gpt2_small", 8);
    asked.setup = {.precision = Precision::amp_bf16, .accumulate = accumulate, .loop = loop};
    asked.setup.optimizer = {.kind = OptimizerKind::adamw, .impl = OptimizerImpl::fused};
    asked.default_optimizer = false;
    return predicted(asked);
  };
  const Prediction plain = in(TrainingLoop::plain), trainer = in(TrainingLoop::trainer),
                   lightning = in(TrainingLoop::lightning), accelerate = in(TrainingLoop::accelerate);
  for (const Prediction* p : {&trainer, &lightning, &accelerate}) EXPECT_GE(p->times.iteration, plain.times.iteration);
  EXPECT_GT(accelerate.times.iteration, plain.times.iteration);
  EXPECT_GT(trainer.times.iteration, accelerate.times.iteration);  // which waits half as often
  EXPECT_EQ(trainer.ops, plain.ops + 1);                           // float32 logits
  EXPECT_EQ(lightning.ops, plain.ops);
  EXPECT_EQ(lightning.times.gpu_busy, plain.times.gpu_busy);
  EXPECT_EQ(accelerate.memory.peak_allocated, trainer.memory.peak_allocated);
  EXPECT_GE(lightning.memory.peak_allocated, plain.memory.peak_allocated);
  // A small batch's peak is where gradients are; there the last ones make a difference.
  ModelRequest small = request("gpt2_small", 1);
  small.setup.loop = TrainingLoop::plain;
  const Prediction without = predicted(small);
  small.setup.loop = TrainingLoop::lightning;
  EXPECT_GT(predicted(small).memory.peak_allocated, without.memory.peak_allocated);
}

TEST(Predict, IsTheSameTwice) {
  EXPECT_EQ(to_json(predicted(request("gpt2_small", 2))), to_json(predicted(request("gpt2_small", 2))));
}

TEST(Predict, RespondsAsHardwareWould) {
  const Prediction base = predicted(request("resnet50", 128));
  EXPECT_GT(predicted(request("resnet50", 256)).times.gpu_busy, base.times.gpu_busy);
  EXPECT_GT(predicted(request("resnet50", 128), "t4").times.gpu_busy, base.times.gpu_busy);
  const Prediction vit = predicted(request("vit_b_16", 64));
  ModelRequest amp = request("vit_b_16", 64);
  amp.setup.precision = Precision::amp_bf16;
  EXPECT_LT(predicted(amp).times.gpu_busy, vit.times.gpu_busy);
  EXPECT_LT(predicted(amp).memory.peak_allocated, vit.memory.peak_allocated);
  EXPECT_EQ(predicted(request("resnet18", 1)).times.bound, Bottleneck::host);
}

TEST(Predict, SaysWhatDoesNotFit) {
  EXPECT_FALSE(predicted(request("llama2_7b", 1), "t4").fits);
  EXPECT_FALSE(predicted(request("resnet50", 4096), "l4").fits);
}

TEST(Predict, PrecisionIsWhatTheGpuHasUnitsFor) {
  ModelRequest tf32 = request("bert_base", 4);
  tf32.setup.precision = Precision::tf32;
  for (const char* older : {"t4", "v100", "p100"}) {
    const Prediction as_fp32 = predicted(request("bert_base", 4), older), allowed = predicted(tf32, older);
    EXPECT_EQ(allowed.times.iteration, as_fp32.times.iteration) << older;
    EXPECT_NE(in_full(allowed).find("no TF32 units"), std::string::npos) << older;
    EXPECT_EQ(in_full(as_fp32).find("TF32"), std::string::npos) << older;
    ModelRequest amp = request("bert_base", 4);
    amp.setup.precision = Precision::amp_bf16;
    EXPECT_FALSE(build_run(amp, gpu(older)).ok()) << older;
  }
  EXPECT_LT(predicted(tf32, "a100").times.gpu_busy, predicted(request("bert_base", 4), "a100").times.gpu_busy);
  EXPECT_EQ(in_full(predicted(tf32, "a100")).find("no TF32 units"), std::string::npos);
}

TEST(Predict, UsesCudnnAttentionOnHopperOnly) {
  ModelRequest amp = request("vit_b_16", 8);
  amp.setup.precision = Precision::amp_bf16;
  const auto has = [&](const std::string& device, std::string_view op) {
    const TrainingRun run = *build_run(amp, gpu(device));
    for (const Op& o : run.graph.ops()) {
      if (run.graph.name(o) == op) return true;
    }
    return false;
  };
  EXPECT_TRUE(has("h100", "aten._scaled_dot_product_cudnn_attention.default"));
  EXPECT_TRUE(has("a100", "aten._scaled_dot_product_flash_attention.default"));
}

// The H100's file under another name, and maybe of another generation.
struct RenamedGpu {
  const char* name;
  const char* architecture;  // empty: the file gives none
  double capability;         // 0: the file gives none
  bool hopper_or_later;
};

class Renamed : public testing::TestWithParam<RenamedGpu> {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("forerun_renamed_" + std::to_string(getpid()) + ".json");
    std::ifstream original(FORERUN_DATA_DIR "/devices/h100_sxm.json");
    nlohmann::json file = nlohmann::json::parse(original);
    file["name"] = GetParam().name;
    file["aliases"] = nlohmann::json::array();
    file["architecture"] = GetParam().architecture;
    if (std::string_view(GetParam().architecture).empty()) file.erase("architecture");
    file["compute_capability"]["value"] = GetParam().capability;
    if (GetParam().capability == 0) file.erase("compute_capability");
    std::ofstream(path_) << file;
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::filesystem::path path_;
};

TEST_P(Renamed, IsPredictedByWhatItsFileSaysAndNotByItsName) {
  const Result<CostModels> models = load_cost_models({path_.string()});
  ASSERT_TRUE(models.ok()) << models.error().message();
  const Device device = *models->devices.find(GetParam().name), h100 = *models->devices.find("h100");
  ModelRequest amp = request("vit_b_16", 8);
  amp.setup.precision = Precision::amp_bf16;
  const Result<TrainingRun> run = build_run(amp, device), there = build_run(amp, h100);
  ASSERT_TRUE(run.ok() && there.ok());
  const Prediction p = predict(*run, device, *models), on_h100 = predict(*there, h100, *models);
  const bool unsaid = in_full(p).find("neither compute_capability nor architecture") != std::string::npos;
  EXPECT_EQ(unsaid, GetParam().capability == 0 && std::string_view(GetParam().architecture).empty());
  if (GetParam().hopper_or_later) {
    EXPECT_EQ(p.times.iteration, on_h100.times.iteration);
    EXPECT_EQ(p.times.gpu_busy, on_h100.times.gpu_busy);
    EXPECT_EQ(p.memory.workspaces, on_h100.memory.workspaces);
    EXPECT_EQ(p.memory.peak_reserved, on_h100.memory.peak_reserved);
  } else {
    EXPECT_NE(p.times.gpu_busy, on_h100.times.gpu_busy);
    EXPECT_LT(p.memory.workspaces, on_h100.memory.workspaces);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gpus, Renamed,
    testing::Values(RenamedGpu{"NVIDIA H800", "hopper", 9.0, true}, RenamedGpu{"NVIDIA H20", "hopper", 0, true},
                    RenamedGpu{"NVIDIA H20-3e", "", 9.0, true}, RenamedGpu{"NVIDIA B200", "blackwell", 10.0, true},
                    RenamedGpu{"NVIDIA GB200", "blackwell", 0, true},
                    RenamedGpu{"No H100 or H200", "ampere", 8.0, false}, RenamedGpu{"NVIDIA X1", "", 0, false}));

TEST(Predict, NamesTheNearestModel) {
  const auto run = build_run(request("resnet5O", 1), gpu("h200"));
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.error().message().find("resnet50"), std::string::npos);
}

// Every field of a prediction but those that the predictor may read, dropped or replaced by nonsense.
nlohmann::json stripped(const nlohmann::json& record) {
  static const std::vector<std::string> kInputs = {"id",    "family",   "args",    "input", "run",
                                                   "env",   "op_names", "modules", "ops",   "storages",
                                                   "frees", "roots",    "params"};
  nlohmann::json kept;
  for (const std::string& key : kInputs) kept[key] = record.at(key);
  kept["env"].erase("calibration");
  return kept;
}

std::vector<std::string> answers(const std::string& path) {
  std::vector<std::string> result;
  const Status status = predict_records(path, std::nullopt, cost_models(),
                                        {.prediction = [&](const Prediction& p) { result.push_back(to_json(p)); },
                                         .bad_record = [](const Error& error) { ADD_FAILURE() << error.message(); }});
  EXPECT_TRUE(status.ok()) << status.error().message();
  return result;
}

TEST(Predict, NeverReadsWhatWasMeasured) {
  Result<LineReader> lines = LineReader::open(FORERUN_SOURCE_DIR "/tests/data/run1.jsonl.zst");
  ASSERT_TRUE(lines.ok());
  const auto folder = std::filesystem::temp_directory_path();
  const std::string whole = folder / "forerun_whole.jsonl";
  const std::string inputs = folder / "forerun_inputs.jsonl";
  const std::string nonsense = folder / "forerun_nonsense.jsonl";
  std::ofstream a(whole), b(inputs), c(nonsense);
  for (int i = 0; i < 15; ++i) {
    const auto line = lines->next();
    ASSERT_TRUE(line.ok() && line->has_value());
    const auto record = nlohmann::json::parse(**line);
    a << **line << "\n";
    b << stripped(record).dump() << "\n";
    nlohmann::json other = record;
    other["time_ms"] = "none";
    other["mem"] = nlohmann::json::array({1, 2});
    other["kernels"] = 7;
    other["alloc_trace"] = nullptr;
    other["env"]["calibration"] = "broken";
    c << other.dump() << "\n";
  }
  a.close(), b.close(), c.close();
  const auto expected = answers(whole);
  EXPECT_EQ(expected.size(), 15U);
  EXPECT_TRUE(answers(inputs) == expected);
  EXPECT_TRUE(answers(nonsense) == expected);
  for (const std::string& file : {whole, inputs, nonsense}) std::filesystem::remove(file);
}

TEST(Predict, ComparesWithMeasurementsAfterwards) {
  std::vector<Prediction> predictions;
  ASSERT_TRUE(predict_records(kStarter, std::nullopt, cost_models(),
                              {.prediction = [&](const Prediction& p) { predictions.push_back(p); },
                               .bad_record = [](const Error& error) { ADD_FAILURE() << error.message(); }})
                  .ok());
  EXPECT_EQ(predictions.size(), 222U);
  const auto errors = measure_errors(kStarter, predictions);
  ASSERT_TRUE(errors.ok());
  ASSERT_EQ(errors->size(), 222U);
  double iteration = 0;
  double allocated = 0;
  for (const ErrorSample& sample : *errors) {
    iteration += sample.iteration / 222;
    allocated += sample.allocated / 222;
  }
  // Bands a little above what `forerun predict` prints for this file: worse than this, something has broken.
  EXPECT_LT(iteration, 0.25);
  EXPECT_LT(allocated, 0.05);
  EXPECT_NE(error_table(*errors).find("wide_resnet"), std::string::npos);
}

TEST(Predict, CountsBrokenRecordsAndGoesOn) {
  const std::string file = std::filesystem::temp_directory_path() / "forerun_broken.jsonl";
  std::ofstream(file) << "{\"id\": \"a\"}\nnot json\n";
  int bad = 0;
  const Status status = predict_records(file, std::nullopt, cost_models(),
                                        {.prediction = [](const Prediction&) { ADD_FAILURE(); },
                                         .bad_record =
                                             [&](const Error& error) {
                                               ++bad;
                                               EXPECT_NE(error.message().find("record"), std::string::npos);
                                             }});
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(bad, 2);
  std::filesystem::remove(file);
}

TEST(Predict, TakesARunThatIsOnlyDescribedFromTheZoo) {
  const std::string file = std::filesystem::temp_directory_path() / "forerun_described.jsonl";
  const std::string run =
      R"("run": {"precision": "fp32", "optimizer": {"name": "SGD", "impl": "foreach", "lr": 0.1, "momentum": 0.9}}})";
  std::ofstream(file) << R"({"schema": "run/2", "id": "a", "family": "resnet", "args": {"block": "bottleneck", )"
                      << R"("layers": [3, 4, 6, 3], "width": 64}, "input": ["image", 64, 3, 224, 1000], )" << run
                      << "\n"
                      << R"({"schema": "run/2", "id": "b", "family": "nobody", "args": {}, )"
                      << R"("input": ["image", 64, 3, 224, 1000], )" << run << "\n";
  std::vector<Prediction> predictions;
  std::vector<Error> errors;
  const Status status = predict_records(file, std::nullopt, cost_models(),
                                        {.prediction = [&](const Prediction& p) { predictions.push_back(p); },
                                         .bad_record = [&](const Error& error) { errors.push_back(error); }});
  EXPECT_TRUE(status.ok());
  ASSERT_EQ(predictions.size(), 1U);
  EXPECT_EQ(predictions[0].times.iteration, predicted(request("resnet50", 64)).times.iteration);
  EXPECT_EQ(predictions[0].memory.peak_allocated, predicted(request("resnet50", 64)).memory.peak_allocated);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].message().find("nobody"), std::string::npos) << errors[0].message();
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace forerun
