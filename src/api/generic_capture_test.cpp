// Captures made without a GPU, mapped for a device, against the iteration derived from the zoo for the same configuration
// (which equals what CUDA dispatches, zoo_check_test.cpp) and against captures of the same models on the GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "api/zoo_check.h"
#include "base/line_reader.h"
#include "derive/iteration.h"
#include "ingest/capture/run_record.h"
#include "predict/predict.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

// Made by python/tests/capture_twins.py and python/tests/capture_pairs.py.
const std::string kTwins = FORERUN_DATA_DIR "/captures/generic.jsonl.zst";
const std::string kPairs = FORERUN_DATA_DIR "/captures/pairs.jsonl.zst";
constexpr double kBar = 0.01;

const CostModels& whole_cost_models() {
  static const CostModels known = *load_cost_models({});
  return known;
}

std::vector<TrainingRun> runs_of(const std::string& path) {
  std::vector<TrainingRun> runs;
  Result<RunRecordReader> reader = RunRecordReader::open(path, Fields::inputs);
  EXPECT_TRUE(reader.ok()) << reader.error().message();
  while (reader.ok()) {
    Result<std::optional<RunRecord>> next = reader->next();
    EXPECT_TRUE(next.ok()) << next.error().message();
    if (!next.ok() || !next->has_value()) break;
    runs.push_back(std::move((*next)->run));
  }
  return runs;
}

// Name, phase, types, shapes and where they matter strides. reshape() names its view by whether it copied; versions of
// PyTorch differ in where they call it.
std::string layout_signature(const Graph& graph, const Op& op) {
  std::string text = signature(graph, op);
  if (const size_t at = text.find("_unsafe_view"); at != std::string::npos) text.replace(at, 12, "view");
  const auto add = [&](TensorId id) {
    text += '@';
    for (size_t d = 0; d < graph.shape(id).size(); ++d) {
      if (graph.shape(id)[d] > 1) text += fmt::format("{},", graph.strides(id)[d]);
    }
  };
  for (const TensorId id : graph.inputs(op)) add(id);
  for (const TensorId id : graph.outputs(op)) add(id);
  return text;
}

// The first op that differs, in words; empty where all agree.
std::string graph_difference(const Graph& mapped, const Graph& derived) {
  for (size_t i = 0; i < std::max(mapped.op_count(), derived.op_count()); ++i) {
    const auto text = [i](const Graph& graph) {
      return i < graph.op_count() ? layout_signature(graph, graph.ops()[i]) : "the end";
    };
    if (text(mapped) != text(derived)) return fmt::format("op {}: {}\nexpected: {}", i, text(mapped), text(derived));
  }
  return "";
}

void expect_close(int64_t found, int64_t expected, double tolerance, const std::string& what) {
  EXPECT_NEAR(static_cast<double>(found), static_cast<double>(expected), tolerance * static_cast<double>(expected))
      << what;
}

class GenericCapture : public testing::TestWithParam<std::string> {};

TEST_P(GenericCapture, MapsToWhatTheZooDerives) {
  const Device device = *whole_cost_models().devices.find(GetParam());
  const derive::DispatchTarget target = {.cudnn_attention = GetParam() == "h200"};
  std::map<std::string, int> families;
  for (TrainingRun& run : runs_of(kTwins)) {
    SCOPED_TRACE(run.id + " on " + device.name);
    const Result<zoo::Model> model = zoo::build_recorded(run.family, run.arguments, run.input);
    ASSERT_TRUE(model.ok()) << model.error().message();
    TrainingRun derived = run;
    derived.graph = *derive::derive_iteration(model->forward, run.input, run.setup, target);
    const Result<TrainingRun> mapped = for_device(std::move(run), device);
    ASSERT_TRUE(mapped.ok()) << mapped.error().message();
    EXPECT_EQ(mapped->backend, Backend::cuda);
    EXPECT_EQ(graph_difference(mapped->graph, derived.graph), "");
    const Prediction a = predict(*mapped, device, whole_cost_models());
    const Prediction b = predict(derived, device, whole_cost_models());
    EXPECT_EQ(a.parameters, b.parameters);
    expect_close(a.times.gpu_busy.value, b.times.gpu_busy.value, 5 * kBar, "GPU time");
    // A cell's forward() holds its nodes until it returns; derived values go after their last use.
    const double tolerance = derived.family == "nas_cell" ? 0.002 : 0.001;
    expect_close(a.memory.peak_allocated.value, b.memory.peak_allocated.value, tolerance, "peak allocated");
    ++families[derived.family];
  }
  EXPECT_EQ(families, (std::map<std::string, int>{{"bert", 2},
                                                  {"gpt2", 2},
                                                  {"gru", 2},
                                                  {"llama", 2},
                                                  {"lstm", 2},
                                                  {"nas_cell", 4},
                                                  {"regnet", 2},
                                                  {"resnet", 4},
                                                  {"rnn", 2},
                                                  {"swin", 2},
                                                  {"transformer", 2},
                                                  {"unet", 2},
                                                  {"vit", 2}}));
}

INSTANTIATE_TEST_SUITE_P(Devices, GenericCapture, testing::Values("h200", "a100_80gb"),
                         [](const auto& device) { return device.param; });

// A capture names no GPU: the default one, or the one asked for. A record that cannot be mapped is told, the rest goes on.
TEST(GenericCaptureFile, IsPredictedForADevice) {
  std::string lines;
  LineReader reader = *LineReader::open(kTwins);
  for (int i = 0; i < 2; ++i) lines += std::string(**reader.next()) + "\n";
  const size_t arity = lines.find("aten.native_batch_norm.default");
  ASSERT_NE(arity, std::string::npos);
  std::string broken = lines.substr(0, lines.find('\n') + 1);
  broken.replace(arity, std::string("aten.native_batch_norm.default").size(), "forerun.attention.default");
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "forerun_generic_capture_test.jsonl";
  std::ofstream(file) << broken << lines;
  for (const auto& [asked, expected] : {std::pair{"", "NVIDIA H200"}, {"l4", "NVIDIA L4"}}) {
    std::vector<std::string> predicted;
    std::vector<std::string> refused;
    std::optional<Device> gpu;
    if (*asked != '\0') gpu = *whole_cost_models().devices.find(asked);
    const Status status =
        predict_records(file.string(), gpu, whole_cost_models(),
                        {.prediction = [&](const Prediction& p) { predicted.push_back(p.gpu); },
                         .bad_record = [&](const Error& error) { refused.push_back(error.message()); }});
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(predicted, (std::vector<std::string>{expected, expected}));
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_NE(refused[0].find("record resnet-fp32, op "), std::string::npos) << refused[0];
    EXPECT_NE(refused[0].find("(forerun.attention.default)"), std::string::npos) << refused[0];
  }
  std::filesystem::remove(file);
}

// NAME/cuda and NAME/generic: one iteration, captured on a GPU's tensors and without one.
TEST(CapturePairs, PredictTheSame) {
  ASSERT_TRUE(std::filesystem::exists(kPairs)) << "python -m tests.capture_pairs makes them on a machine with a GPU";
  const Device device = *whole_cost_models().devices.find(kDefaultGpu);
  std::map<std::string, std::map<std::string, Prediction>> pairs;
  for (TrainingRun& run : runs_of(kPairs)) {
    const size_t slash = run.id.rfind('/');
    ASSERT_NE(slash, std::string::npos) << run.id << " is neither NAME/cuda nor NAME/generic";
    const std::string backend = run.id.substr(slash + 1);
    EXPECT_EQ(backend, name_of(run.backend)) << run.id;
    const std::string name = run.id.substr(0, slash);
    const Result<TrainingRun> mapped = for_device(std::move(run), device);
    ASSERT_TRUE(mapped.ok()) << name << ": " << mapped.error().message();
    pairs[name].emplace(backend, predict(*mapped, device, whole_cost_models()));
  }
  EXPECT_FALSE(pairs.empty());
  for (const auto& [name, both] : pairs) {
    SCOPED_TRACE(name);
    ASSERT_EQ(both.size(), 2u);
    const Prediction& cuda = both.at("cuda");
    const Prediction& generic = both.at("generic");
    expect_close(generic.times.iteration.value, cuda.times.iteration.value, kBar, "iteration");
    expect_close(generic.times.gpu_busy.value, cuda.times.gpu_busy.value, kBar, "GPU time");
    expect_close(generic.memory.peak_allocated.value, cuda.memory.peak_allocated.value, kBar, "peak allocated");
    expect_close(generic.memory.peak_reserved.value, cuda.memory.peak_reserved.value, 2 * kBar, "peak reserved");
    EXPECT_EQ(generic.parameters, cuda.parameters);
  }
}

}  // namespace
}  // namespace forerun
