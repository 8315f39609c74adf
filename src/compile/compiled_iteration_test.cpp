// Compiled iterations of the zoo: numbers of kernels that Inductor generated (data/compile/measured.jsonl), and what must hold of any.
#include "compile/compiled_iteration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <unordered_map>

#include "compile/joint_graph.h"
#include "derive/dispatch.h"
#include "derive/iteration.h"
#include "zoo/zoo.h"

namespace forerun::compile {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Graph iteration(const std::string& name, const Settings& settings, const TrainingSetup& setup,
                const derive::DispatchTarget& target = {}) {
  const Result<zoo::Model> model = zoo::build(name, settings);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().what);
  Result<Graph> graph = derive::derive_iteration(model->forward, model->input, setup, target);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().what);
  return std::move(*graph);
}

struct Counts {
  int64_t generated = 0;
  int64_t libraries = 0;
};
Counts counts_of(const CompiledIteration& compiled, Phase phase) {
  Counts counts;
  for (size_t i = 0; i < compiled.graph.op_count(); ++i) {
    const Op& op = compiled.graph.ops()[i];
    if (!compiled.parts.inside[i] || op.phase != phase) continue;
    ++(is_generated(compiled.graph.name(op)) ? counts.generated : counts.libraries);
  }
  return counts;
}

// ResNet-50 at batch 64 in bfloat16 under autocast; it was measured with its channels last.
CompiledIteration resnet50(bool channels_last) {
  const Graph eager =
      iteration("resnet50", {{"batch", "64"}}, {.precision = Precision::amp_bf16, .channels_last = channels_last});
  Result<CompiledIteration> compiled = compiled_iteration(eager, false);
  EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : compiled.error().what);
  return std::move(*compiled);
}

TEST(CompiledIteration, HasTheKernelsThatInductorGeneratedOfResNet50) {
  const CompiledIteration compiled = resnet50(true);
  const Counts forward = counts_of(compiled, Phase::forward);
  const Counts backward = counts_of(compiled, Phase::backward);
  EXPECT_EQ(forward.libraries, 54);  // 53 convolutions and a product
  EXPECT_EQ(backward.libraries, 55);
  // What AOTAutograd of PyTorch 2.13 keeps of the same model, traced without a GPU, and the input of the pooling layer, which 2.11 keeps too.
  EXPECT_NEAR(static_cast<double>(compiled.parts.kept_bytes) / (1 << 20), 2529.6 + 98, 2);
  EXPECT_NEAR(static_cast<double>(forward.generated), 290, 6);
  EXPECT_NEAR(static_cast<double>(backward.generated), 270, 6);
}

std::vector<const Op*> ops_with(const CompiledIteration& compiled, Phase phase, std::string_view name) {
  std::vector<const Op*> found;
  for (const Op& op : compiled.graph.ops()) {
    const bool computes = compiled.graph.attributes(op).get_string("ops").find(name) != std::string::npos;
    if (op.phase == phase && (computes || compiled.graph.name(op) == name)) found.push_back(&op);
  }
  return found;
}

// The gradient of a pooling layer whose windows overlap is stored, and the norm before it reads that.
TEST(CompiledIteration, StoresGradientsOfWindowsThatOverlap) {
  const CompiledIteration compiled = resnet50(true);
  const std::vector<const Op*> pools = ops_with(compiled, Phase::backward, "max_pool2d_with_indices_backward");
  ASSERT_EQ(pools.size(), 1u);
  EXPECT_EQ(compiled.graph.attributes(*pools[0]).get_string("ops").find("batch_norm"), std::string::npos);
  EXPECT_TRUE(ops_with(compiled, Phase::backward, "aten.clone.default").empty());
  int64_t forward = 0, backward = 0;
  for (const Op& op : compiled.graph.ops()) {
    (op.phase == Phase::forward ? forward : backward) += compiled.graph.attributes(op).get_int("norms", 0);
  }
  EXPECT_EQ(forward, 53) << "each batch norm is applied once";
  EXPECT_EQ(backward, 0);
}

// Where the compiler alone puts channels last, the gradient that comes from the head does not lie so: the first convolution that it
// reaches copies it, further ones get theirs from convolutions.
TEST(CompiledIteration, CopiesTheGradientThatComesPlainly) {
  const CompiledIteration compiled = resnet50(false);
  const std::vector<const Op*> copies = ops_with(compiled, Phase::backward, "aten.clone.default");
  ASSERT_EQ(copies.size(), 1u);
  const TensorId copy = compiled.graph.outputs(*copies[0])[0];
  EXPECT_EQ(compiled.graph.element_count(copy), 64 * 2048 * 7 * 7);
  EXPECT_EQ(compiled.graph.strides(copy)[1], 1) << "with its channels last";
}

// Autocast casts what three products read three times; the compiler casts it once. A model's logits are returned beside its loss: their
// gradient is not written over them.
TEST(CompiledIteration, CastsOnceAndLeavesLogitsAlone) {
  const Graph eager = iteration("bert_base", {{"batch", "4"}, {"length", "128"}}, {.precision = Precision::amp_bf16});
  const Result<CompiledIteration> compiled = compiled_iteration(eager, true);
  ASSERT_TRUE(compiled.ok()) << compiled.error().what;
  const Graph& graph = compiled->graph;
  int64_t logits = 0;  // storages as large as those, padded for products or not
  for (const Storage& storage : graph.storages()) {
    logits += storage.bytes.value == 4L * 128 * 30'522 * 2 || storage.bytes.value == 4L * 128 * 30'528 * 2;
  }
  EXPECT_GE(logits, 3);                     // they themselves, the zeros that the caller hands back, and their gradient
  std::unordered_map<uint32_t, int> casts;  // by storage that is read, of kernels that cast and do no more
  for (const Op& op : graph.ops()) {
    if (graph.name(op) == kPointwise && graph.attributes(op).get_string("ops") == "to_copy") {
      for (const TensorId input : graph.inputs(op)) EXPECT_LE(++casts[graph.tensor(input).storage.value], 1);
    }
    for (const TensorId output : graph.outputs(op)) casts[graph.tensor(output).storage.value] = 0;  // another value
  }
}

// 50,257 words are no multiple of eight: logits and both copies of their gradient have 50,264, the zeros that autograd hands in have not, and
// those stay until the pass ends.
TEST(CompiledIteration, PadsProductsAndHoldsWhatIsHandedIn) {
  const Graph eager = iteration("gpt2_small", {{"batch", "4"}, {"length", "256"}}, {.precision = Precision::amp_bf16});
  const Result<CompiledIteration> compiled = compiled_iteration(eager, true, DType::bfloat16);
  ASSERT_TRUE(compiled.ok()) << compiled.error().what;
  const Graph& graph = compiled->graph;
  int64_t padded = 0;
  for (const Storage& storage : graph.storages()) padded += storage.bytes.value == 4L * 256 * 50'264 * 2;
  EXPECT_EQ(padded, 3);
  size_t last = 0;  // op of the backward pass
  for (size_t i = 0; i < graph.op_count(); ++i) {
    if (compiled->parts.inside[i] && graph.ops()[i].phase == Phase::backward) last = i;
  }
  int64_t zeros = 0;
  for (const Storage& storage : graph.storages()) {
    if (storage.bytes.value != 4L * 256 * 50'257 * 2 || storage.freed_before.value <= last) continue;
    ++zeros;
  }
  EXPECT_EQ(zeros, 1);
}

// The gradient of a convolution's bias is a reduction of its own: the library is not asked for it.
TEST(CompiledIteration, SumsGradientsOfBiasesApart) {
  const Graph eager = iteration("alexnet", {{"batch", "4"}}, {.precision = Precision::amp_bf16});
  const Result<CompiledIteration> compiled = compiled_iteration(eager, false);
  ASSERT_TRUE(compiled.ok()) << compiled.error().what;
  int convolutions = 0;
  int sums = 0;
  for (const Op& op : compiled->graph.ops()) {
    const Attributes& attributes = compiled->graph.attributes(op);
    if (compiled->graph.name(op) == kReduction) {
      sums += attributes.get_string("ops").find("convolution_backward") != std::string::npos ? 1 : 0;
    }
    if (compiled->graph.name(op) != "aten.convolution_backward.default") continue;
    ++convolutions;
    EXPECT_EQ(attributes.get_ints("bias_sizes"), Shape{0});
    EXPECT_EQ(std::get<std::vector<bool>>(*attributes.find("output_mask")),
              (std::vector<bool>{convolutions < 5, true, false}));
    EXPECT_EQ(op.output_count, convolutions < 5 ? 2U : 1U);  // images get no gradient
  }
  EXPECT_EQ(convolutions, 5);
  EXPECT_GE(sums, 5);
}

// BERT's three tables of embeddings get their rows where the gradient of the norm behind them is made.
TEST(CompiledIteration, AddsIntoTablesWhereRowsAreMade) {
  const Graph eager = iteration("bert_base", {{"batch", "2"}, {"length", "128"}, {"layers", "1"}}, {});
  const Result<CompiledIteration> compiled = compiled_iteration(eager, true);
  ASSERT_TRUE(compiled.ok()) << compiled.error().what;
  int64_t kernels = 0;
  int64_t adds = 0;
  for (const Op& op : compiled->graph.ops()) {
    const int64_t here = compiled->graph.attributes(op).get_int("adds", 0);
    if (here == 0) continue;
    ++kernels;
    adds += here;
  }
  EXPECT_LE(kernels, 2);  // positions are added up over the batch first
  EXPECT_EQ(adds, (2 + 2 + 1) * 128 * 768);
}

// T5's biases of distances are added into 32 rows, head by head: neighbours meet.
TEST(CompiledIteration, TellsWhereNeighboursAddIntoTheSameRow) {
  const Graph eager = iteration("t5_small", {{"batch", "2"}, {"length", "64"}, {"layers", "1"}}, {});
  const Result<CompiledIteration> compiled = compiled_iteration(eager, true);
  ASSERT_TRUE(compiled.ok()) << compiled.error().what;
  int64_t crowded = 0;
  for (const Op& op : compiled->graph.ops()) crowded += compiled->graph.attributes(op).get_int("crowded", 0);
  EXPECT_EQ(crowded, 2 * 64 * 64 * 8);  // encoder and decoder
}

// Whisper makes no mask for its encoder nor for what looks at it, traced or not.
TEST(CompiledIteration, LeavesUnmaskedAttentionToTheFusedKernels) {
  const derive::DispatchTarget traced = {.traced_masks = true};
  const Graph eager = iteration("whisper-tiny", {{"batch", "2"}}, {.precision = Precision::amp_bf16}, traced);
  for (const Op& op : eager.ops()) {
    EXPECT_NE(eager.name(op), "aten.bmm.default");
    EXPECT_EQ(eager.attributes(op).find("never_masked"), nullptr);
  }
}

// While it is traced, attention that looks at everything is made of products in float32; those of the backward pass are cast, as autocast
// is on there too.
TEST(CompiledIteration, CastsProductsOfTheBackwardPass) {
  const derive::DispatchTarget traced = {.traced_masks = true};
  const Graph eager =
      iteration("bert_base", {{"batch", "2"}, {"length", "64"}}, {.precision = Precision::amp_bf16}, traced);
  const Result<CompiledIteration> compiled = compiled_iteration(eager, true, autocast_of(Precision::amp_bf16));
  ASSERT_TRUE(compiled.ok()) << compiled.error().what;
  std::unordered_map<int, int> wide;  // products in float32, by phase
  int products = 0;
  for (const Op& op : compiled->graph.ops()) {
    if (compiled->graph.name(op) != "aten.bmm.default") continue;
    ++products;
    const DType dtype = compiled->graph.tensor(compiled->graph.outputs(op)[0]).dtype;
    wide[static_cast<int>(op.phase)] += dtype == DType::float32;
  }
  EXPECT_EQ(products, 12 * 6);
  EXPECT_EQ(wide[static_cast<int>(Phase::forward)], 12 * 2);
  EXPECT_EQ(wide[static_cast<int>(Phase::backward)], 0);
}

// Which nets are given their channels last (decide_layout_opt): not those whose wide convolutions make few channels, that are made of groups,
// or in which convolutions are few.
TEST(CompiledIteration, PutsChannelsLastWhereInductorDoes) {
  const auto last = [](const char* name) {
    std::vector<GraphBreak> breaks;
    const std::vector<Round> rounds = rounds_of(iteration(name, {{"batch", "2"}}, {}), false, {}, nullptr, breaks);
    EXPECT_TRUE(breaks.empty());
    return rounds.front().channels_last;
  };
  EXPECT_TRUE(last("resnet50"));
  EXPECT_TRUE(last("mobilenet_v3_small"));
  EXPECT_FALSE(last("densenet121"));
  EXPECT_FALSE(last("resnext50_32x4d"));
  EXPECT_FALSE(last("vit_b_16"));
}

// Norms of many rows: what their weights get is summed in the kernel that reduces the rows, and put together in a further one each.
TEST(CompiledIteration, SumsOverRowsAreTakenAlong) {
  const auto reductions = [](const char* batch) {
    const Graph eager = iteration("vit_b_16", {{"batch", batch}}, {.precision = Precision::amp_bf16});
    const Result<CompiledIteration> compiled = compiled_iteration(eager, false);
    EXPECT_TRUE(compiled.ok());
    int64_t wide = 0;
    for (const Op& op : compiled->graph.ops()) {
      const Attributes& attributes = compiled->graph.attributes(op);
      const bool norm = attributes.get_string("ops").find("native_layer_norm_backward") != std::string::npos;
      if (norm && compiled->graph.name(op) == kReduction) wide += attributes.get_int("elements", 0) > 768 * 4;
    }
    return wide;
  };
  // 64 images: one kernel a norm reads its gradient; 16, which stay in the cache: two.
  EXPECT_GT(reductions("16"), reductions("64"));
}

TEST(CompiledIteration, LeavesLossAndUpdateOutside) {
  const Graph eager = iteration("resnet18", {{"batch", "8"}}, {});
  const Result<CompiledIteration> compiled = compiled_iteration(eager, false);
  ASSERT_TRUE(compiled.ok());
  bool loss = false;
  for (size_t i = 0; i < compiled->graph.op_count(); ++i) {
    const Op& op = compiled->graph.ops()[i];
    if (op.phase == Phase::update) {
      EXPECT_FALSE(compiled->parts.inside[i]);
    }
    loss = loss || (!compiled->parts.inside[i] && compiled->graph.name(op).starts_with("aten._log_softmax."));
  }
  EXPECT_TRUE(loss);
  EXPECT_EQ(compiled->graph.parameter_count(), eager.parameter_count());
}

// Every family, in two precisions: what is made is a sound graph (compiled_iteration verifies it) with few more ops at most, each storage that
// is read was written before, and nothing of the update changes.
TEST(CompiledIteration, IsSoundForModelsOfEveryKind) {
  for (const char* name : {"resnet18", "vit_b_16", "gpt2_small", "mobilenet_v3_small", "densenet121", "convnext_tiny",
                           "swin_t", "bert_base", "tinyllama_1b", "randwire_er"}) {
    const Result<zoo::Model> model = zoo::build(name, {{"batch", "2"}});
    ASSERT_TRUE(model.ok()) << name;
    for (const Precision precision : {Precision::fp32, Precision::amp_bf16}) {
      for (const int64_t accumulate : {1, 2}) {
        const Graph eager = iteration(name, {{"batch", "2"}}, {.precision = precision, .accumulate = accumulate});
        const Result<CompiledIteration> compiled = compiled_iteration(eager, model->input.flavour == "hf");
        ASSERT_TRUE(compiled.ok()) << name << ": " << compiled.error().what << " " << compiled.error().where;
        EXPECT_LT(compiled->graph.op_count(), eager.op_count() * 5 / 4) << name;
        EXPECT_EQ(compiled->parts.inside.size(), compiled->graph.op_count());
        EXPECT_EQ(compiled->parts.graphs, 2);  // of every micro-batch the same
        EXPECT_GT(compiled->parts.kept_bytes, 0);
      }
    }
  }
}

// A frame that calls a recurrent layer is not compiled, and there is no other: nothing changes.
TEST(CompiledIteration, SaysWhereAGraphBreaks) {
  const Graph eager = iteration("lstm_ptb_medium", {{"batch", "4"}}, {});
  const Result<CompiledIteration> compiled = compiled_iteration(eager, false);
  ASSERT_TRUE(compiled.ok()) << compiled.error().what;
  ASSERT_FALSE(compiled->parts.breaks.empty());
  EXPECT_FALSE(compiled->parts.breaks[0].module.empty());
  EXPECT_EQ(compiled->parts.graphs, 0);
  EXPECT_EQ(compiled->graph.op_count(), eager.op_count());
}

}  // namespace
}  // namespace forerun::compile
