#include "derive/quantized_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "derive/test_blocks.h"

namespace forerun::derive::quantized_test {
namespace {

constexpr int64_t kWidth = kBlockWidth;
constexpr int64_t kElements = 4 * kWidth * kWidth;  // of a weight of a block

TrainingSetup adapted(const QuantizeSpec& quantize, std::string target = "up") {
  return {.lora = {.rank = 4, .targets = {std::move(target)}}, .quantize = quantize};
}

Graph trained(const TrainingSetup& setup, int blocks = 3) { return trained_blocks(setup, blocks, UpBias::with); }

int64_t count(const Graph& graph, std::string_view name, Phase phase) {
  return std::count_if(graph.ops().begin(), graph.ops().end(),
                       [&](const Op& op) { return op.phase == phase && graph.name(op) == name; });
}

// By name of parameters and buffers.
std::map<std::string, int64_t> model_bytes(const Graph& graph) {
  std::map<std::string, int64_t> bytes;
  for (const Storage& storage : graph.storages()) {
    if (storage.root != Root::parameter && storage.root != Root::buffer) continue;
    bytes[graph.names()[storage.root_name]] += storage.bytes.value;
  }
  return bytes;
}

std::string refusal(const TrainingSetup& setup, int blocks = 1) {
  const Result<Graph> graph = derive_iteration(blocks_model(blocks, UpBias::with), {.kind = InputKind::tokens}, setup);
  return graph.ok() ? "" : graph.error().message();
}

TEST(Quantized, FourBitsAndAScaleForEachBlock) {
  const auto bytes = model_bytes(trained(adapted({.format = WeightFormat::nf4})));
  EXPECT_EQ(bytes.at("layers.0.up.weight"), kElements / 2);
  EXPECT_EQ(bytes.at("layers.0.up.weight.absmax"), kElements / 64 * 4);
  EXPECT_EQ(bytes.at("layers.0.up.weight.quant_map"), 16 * 4);
  EXPECT_EQ(bytes.at("layers.0.up.bias"), 4 * 4 * kWidth);
  EXPECT_EQ(bytes.at("layers.0.up.lora_A.weight"), 4 * 4 * kWidth);
  EXPECT_EQ(bytes.at("embed.weight"), 4 * 100 * kWidth);
  EXPECT_EQ(bytes.at("head.weight"), 4 * 100 * kWidth) << "the last layer stays as it is";
}

TEST(Quantized, ScalesOfScalesHaveATableEach) {
  const auto bytes = model_bytes(trained(adapted({.format = WeightFormat::fp4, .nested = true})));
  EXPECT_EQ(bytes.at("layers.1.down.weight.absmax"), kElements / 64);
  EXPECT_EQ(bytes.at("layers.1.down.weight.nested_absmax"), 4 * ((kElements / 64 + 255) / 256));
  EXPECT_EQ(bytes.at("layers.1.down.weight.nested_offset"), 4);
  EXPECT_EQ(bytes.at("layers.1.down.weight.nested_quant_map"), 4 * 256);
}

TEST(Quantized, EightBitsAndAScaleForEachRow) {
  const auto bytes = model_bytes(trained(adapted({.format = WeightFormat::int8})));
  EXPECT_EQ(bytes.at("layers.0.down.weight"), kElements);
  EXPECT_EQ(bytes.at("layers.0.down.weight.SCB"), 4 * kWidth);
  EXPECT_EQ(bytes.at("layers.0.up.weight.SCB"), 4 * 4 * kWidth);
}

TEST(Quantized, WeightsAreCopiedForEachProductAndForItsGradient) {
  const Graph graph = trained(adapted({.format = WeightFormat::nf4}));
  EXPECT_EQ(count(graph, "bitsandbytes.dequantize_4bit.default", Phase::forward), 6);
  // What comes before the first adapter wants no gradient.
  EXPECT_EQ(count(graph, "bitsandbytes.dequantize_4bit.default", Phase::backward), 5);
  const Graph plain = trained(adapted({}));
  EXPECT_EQ(count(graph, "aten.mm.default", Phase::forward), count(plain, "aten.mm.default", Phase::forward));
  EXPECT_EQ(count(graph, "aten.mm.default", Phase::backward), count(plain, "aten.mm.default", Phase::backward));
  EXPECT_EQ(count(graph, "aten.clone.default", Phase::forward), 3) << "peft copies what it adds to";
  EXPECT_EQ(graph.parameter_count(), plain.parameter_count());
}

TEST(Quantized, ProductsAreOfTheTypeAskedFor) {
  TrainingSetup setup = adapted({.format = WeightFormat::nf4});
  const auto types = [&] {
    std::map<DType, int> found;
    const Graph graph = trained(setup);
    for (const Op& op : graph.ops()) {
      if (graph.name(op) != "bitsandbytes.dequantize_4bit.default") continue;
      ++found[graph.tensor(graph.outputs(op)[0]).dtype];
    }
    return found;
  };
  EXPECT_EQ(types(), (std::map<DType, int>{{DType::float32, 11}}));
  setup.precision = Precision::amp_bf16;
  EXPECT_EQ(types(), (std::map<DType, int>{{DType::bfloat16, 11}}));
  EXPECT_EQ(model_bytes(trained(setup)).at("layers.0.up.bias"), 2 * 4 * kWidth) << "turned to it for good";
  setup.quantize.compute = DType::float16;
  EXPECT_EQ(types(), (std::map<DType, int>{{DType::float16, 11}}));
}

TEST(Quantized, CheckpointedBlocksCopyAgainWhatTheyRunAgain) {
  TrainingSetup setup = adapted({.format = WeightFormat::nf4});
  setup.checkpointing = Checkpointing::block;
  const Graph graph = trained(setup);
  // "up" of each block for the GELU's sake; "down" keeps nothing and does not run again.
  EXPECT_EQ(count(graph, "bitsandbytes.dequantize_4bit.default", Phase::backward), 5 + 3);
  setup.checkpointing = Checkpointing::selective;
  EXPECT_EQ(count(trained(setup), "bitsandbytes.dequantize_4bit.default", Phase::backward), 5 + 3)
      << "products within an op of a library are not seen";
}

TEST(Quantized, AnAdapterAtTheEndOfABlockRunsAgainUpToItsSecondProduct) {
  TrainingSetup setup = adapted({}, "down");
  setup.checkpointing = Checkpointing::block;
  const Graph graph = trained(setup, 1);
  std::vector<bool> made(graph.storages().size());
  for (const Op& op : graph.ops()) {
    for (const TensorId input : graph.inputs(op)) {
      const StorageId id = graph.tensor(input).storage;
      EXPECT_TRUE(made[id.value] || graph.storage(id).root != Root::none)
          << graph.name(op) << " reads what nothing made";
    }
    for (const TensorId output : graph.outputs(op)) made[graph.tensor(output).storage.value] = true;
  }
}

TEST(Quantized, EightBitsHoldTheirInputsCheckpointedOrNot) {
  const auto growth = [](WeightFormat format) {
    TrainingSetup setup = adapted({.format = format});
    setup.checkpointing = Checkpointing::block;
    return kept_for_backward(trained(setup, 6)) - kept_for_backward(trained(setup, 5));
  };
  const int64_t block_input = 64 * 32 * kWidth * 4;
  EXPECT_EQ(growth(WeightFormat::nf4), block_input);
  EXPECT_EQ(growth(WeightFormat::int8), block_input + 4 * block_input) << "that of down, four times as wide";
}

TEST(Quantized, EightBitsMultiplyInEightBits) {
  TrainingSetup setup = adapted({.format = WeightFormat::int8});
  setup.precision = Precision::bf16;
  const Graph graph = trained(setup);
  EXPECT_EQ(count(graph, "bitsandbytes.int8_linear_matmul.default", Phase::forward), 6);
  EXPECT_EQ(count(graph, "bitsandbytes.int8_vectorwise_quant.default", Phase::forward), 6);
  EXPECT_EQ(count(graph, "aten._local_scalar_dense.default", Phase::forward), 6) << "the host asks for outliers";
  EXPECT_EQ(count(graph, "bitsandbytes.int8_linear_matmul.default", Phase::backward), 0);
}

TEST(Quantized, TrainedWeightsAreRefused) {
  const QuantizeSpec nf4{.format = WeightFormat::nf4};
  EXPECT_NE(refusal({.quantize = nf4}).find("layers.0.up.weight would be trained"), std::string::npos);
  EXPECT_NE(refusal({.freeze = {"up.weight", "down"}, .quantize = nf4}).find("up.bias would be trained"),
            std::string::npos);
  EXPECT_EQ(refusal({.freeze = {"layers"}, .quantize = nf4}), "");
  TrainingSetup average = adapted(nf4);
  average.ema = true;
  EXPECT_NE(refusal(average).find("moving average"), std::string::npos);
  EXPECT_NE(refusal({.freeze = {"embed"}, .quantize = nf4}, 0).find("no linear layers"), std::string::npos);
}

TEST(Quantized, IsWrittenAsUsersDo) {
  for (const char* text : {"nf4", "fp4", "int8", "nf4:double", "fp4:compute=fp16", "nf4:double:compute=bf16"}) {
    const auto spec = parse_quantize(text);
    ASSERT_TRUE(spec.ok()) << text;
    EXPECT_EQ(text_of(*spec), text);
  }
  EXPECT_FALSE(parse_quantize("none")->any());
  for (const char* text : {"", "4bit", "int4", "nf4:triple", "nf4:compute=int8", "int8:double", "int8:compute=fp16"}) {
    const auto spec = parse_quantize(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_NE(spec.error().remedy.find("nf4, fp4 or int8"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace forerun::derive::quantized_test
