// Sequence and attention families: parameter counts equal the published ones and those of measured records, every graph
// is sound, source-level calls are the ones PyTorch's source makes, and settings that make no sense are errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/line_reader.h"
#include "zoo/zoo.h"

namespace forerun::zoo {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Model built(std::string_view name, const Settings& settings = {}) {
  Result<Model> model = build(name, settings);
  EXPECT_TRUE(model) << name << ": " << (model ? "" : model.error().what);
  return model ? *std::move(model) : Model{};
}

std::map<std::string, int> op_counts(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Op& op : graph.ops()) ++counts[graph.name(op)];
  return counts;
}

struct PublishedCount {
  const char* name;
  Settings settings;
  int64_t parameters;
};

// transformers' and torchvision's documentation and checkpoints.
const std::vector<PublishedCount>& published() {
  static const std::vector<PublishedCount> list = {
      {"bert_base", {{"head", "none"}}, 109482240},
      {"bert_large", {{"head", "none"}}, 335141888},
      {"bert_base", {}, 109514298},
      {"gpt2", {}, 124439808},
      {"gpt2_small", {}, 124439808},
      {"gpt2_medium", {}, 354823168},
      {"gpt2_large", {}, 774030080},
      {"gpt2_xl", {}, 1557611200},
      {"gpt3_175b", {}, 174604259328},
      {"llama2_7b", {}, 6738415616},
      {"llama2_13b", {}, 13015864320},
      {"llama3_8b", {}, 8030261248},
      {"tinyllama_1b", {}, 1100048384},
      {"t5_small", {}, 60506624},
      {"t5_base", {}, 222903552},
      {"t5_large", {}, 737668096},
      {"vit_b_16", {}, 86567656},
      {"vit_b_32", {}, 88224232},
      {"vit_l_16", {}, 304326632},
      {"vit_l_32", {}, 306535400},
      {"vit_h_14", {}, 632045800},
      {"swin_t", {}, 28288354},
      {"swin_s", {}, 49606258},
      {"swin_b", {}, 87768224},
  };
  return list;
}

// The paper's 21,743 million: its table counts the encoder, to a few million.
TEST(SequenceZoo, VitWithParallelBlocksHasItsPublishedSize) {
  const Model model = built("vit_22b", {{"batch", "1"}});
  const int64_t head = 1000 * (6144 + 1);
  EXPECT_NEAR(static_cast<double>(model.forward.parameter_count() - head) / 21'743e6, 1, 5e-4);
}

TEST(SequenceZoo, ParameterCountsAreThePublishedOnes) {
  for (const PublishedCount& entry : published()) {
    EXPECT_EQ(built(entry.name, entry.settings).forward.parameter_count(), entry.parameters) << entry.name;
  }
}

TEST(SequenceZoo, CountsOfFamiliesWithoutPublishedOnesFollowTheFormula) {
  const int64_t d = 512;
  const int64_t ff = 2048;
  const int64_t attention = 4 * d * d + 4 * d;
  const int64_t feed_forward = 2 * d * ff + ff + d;
  const int64_t encoder = 6 * (attention + feed_forward + 2 * 2 * d) + 2 * d;
  const int64_t decoder = 6 * (2 * attention + feed_forward + 3 * 2 * d) + 2 * d;
  EXPECT_EQ(built("transformer_base").forward.parameter_count(), encoder + decoder + 37000 * d + (d + 1) * 37000);
  EXPECT_EQ(built("gnmt").forward.parameter_count(), 132742400);  // as measured records of the same model say

  // Criteo Kaggle: 33,762,577 rows of 16; 13-512-256-64-16; 16 + 27 * 26 / 2 = 367; 367-512-256-2.
  const auto mlp = [](std::vector<int64_t> widths) {
    int64_t count = 0;
    for (size_t i = 0; i + 1 < widths.size(); ++i) count += (widths[i] + 1) * widths[i + 1];
    return count;
  };
  EXPECT_EQ(built("dlrm").forward.parameter_count(),
            33762577 * 16 + mlp({13, 512, 256, 64, 16}) + mlp({367, 512, 256, 2}));
  EXPECT_EQ(built("dlrm", {{"rows", "10,20,30"}, {"dim", "8"}, {"bottom", "32"}, {"top", "64"}, {"features", "5"}})
                .forward.parameter_count(),
            60 * 8 + mlp({5, 32, 8}) + mlp({8 + 6, 64, 2}));
}

TEST(SequenceZoo, TiedWeightsAreOneParameter) {
  EXPECT_EQ(built("gpt2").forward.parameter_tensors(), 2 + 12 * 12 + 2);
  EXPECT_EQ(built("bert_base").forward.parameter_tensors(), 202);
  const int64_t untied = built("tinyllama_1b").forward.parameter_count();
  EXPECT_EQ(built("tinyllama_1b", {{"tied", "true"}}).forward.parameter_count(), untied - 32000 * 2048);
}

TEST(SequenceZoo, GraphsAreSound) {
  for (const char* name : {"transformer", "lstm", "rnn", "gru", "bert", "gpt2", "llama", "t5", "vit", "swin", "dlrm"}) {
    const Model model = built(name);
    const Status status = verify(model.forward);
    EXPECT_TRUE(status) << name << ": " << (status ? "" : status.error().what);
    ASSERT_EQ(model.forward.results().size(), 1U) << name;
    const auto logits = model.forward.shape(model.forward.results().front());
    EXPECT_EQ(logits.back(), model.input.classes) << name;
    EXPECT_EQ(logits.front(), model.input.batch) << name;
  }
}

// Every parameter takes part: it is the operand of some op, so that derivation gives it a gradient.
TEST(SequenceZoo, EveryParameterIsUsed) {
  for (const char* name : {"transformer", "lstm", "bert", "gpt2", "llama", "t5", "vit", "swin", "dlrm"}) {
    const Model model = built(name);
    std::set<uint32_t> used;
    for (const Op& op : model.forward.ops()) {
      for (const TensorId input : model.forward.inputs(op)) used.insert(input.value);
    }
    for (const TensorId parameter : model.forward.parameters()) {
      const Storage& storage = model.forward.storage(model.forward.tensor(parameter).storage);
      EXPECT_TRUE(used.contains(parameter.value)) << name << " " << model.forward.names()[storage.root_name];
    }
  }
}

TEST(SequenceZoo, EagerAttentionIsSpelledOut) {
  for (const char* name : {"bert", "gpt2"}) {
    const Model plain = built(name);
    const Model eager = built(name, {{"attention", "eager"}});
    EXPECT_TRUE(verify(eager.forward)) << name;
    EXPECT_EQ(eager.forward.parameter_count(), plain.forward.parameter_count()) << name;
    auto counts = op_counts(eager.forward);
    auto plain_counts = op_counts(plain.forward);
    EXPECT_EQ(counts["aten.scaled_dot_product_attention.default"], 0) << name;
    EXPECT_EQ(counts["aten.matmul.default"] - plain_counts["aten.matmul.default"], 12 * 2) << name;
    EXPECT_EQ(counts["aten.softmax.int"] + counts["aten._softmax.default"], 12) << name;
    EXPECT_GE(counts["aten.add.Tensor"], plain_counts["aten.add.Tensor"] + 12) << name;
  }
  const auto wrong = build("bert", {{"attention", "flash"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message().find("sdpa or eager"), std::string::npos) << wrong.error().message();
}

TEST(SequenceZoo, SourceLevelCallsOfBert) {
  auto counts = op_counts(built("bert").forward);
  EXPECT_EQ(counts["aten.linear.default"], 12 * 6 + 2);
  EXPECT_EQ(counts["aten.layer_norm.default"], 12 * 2 + 2);
  EXPECT_EQ(counts["aten.scaled_dot_product_attention.default"], 12);
  EXPECT_EQ(counts["aten.dropout.default"], 12 * 2 + 1);
  EXPECT_EQ(counts["aten.embedding.default"], 3);
  auto still = op_counts(built("bert", {{"dropout", "0"}}).forward);
  EXPECT_EQ(still.count("aten.dropout.default"), 0U);  // PyTorch dispatches nothing for p = 0
}

TEST(SequenceZoo, SourceLevelCallsOfTransformer) {
  auto counts = op_counts(built("transformer", {{"enc", "2"}, {"dec", "3"}}).forward);
  EXPECT_EQ(counts["aten.embedding.default"], 1);  // one look-up feeds both sides
  EXPECT_EQ(counts["aten.scaled_dot_product_attention.default"], 2 + 2 * 3);
  EXPECT_EQ(counts["aten.split_with_sizes.default"], 2 * 3);
  EXPECT_EQ(counts["aten.layer_norm.default"], 2 * 2 + 3 * 3 + 2);
}

TEST(SequenceZoo, SwinShiftsOnlyWhereWindowsAreSmallerThanTheImage) {
  // At 224 the stages have sides 56, 28, 14, 7: the last is one window, so its second block is not shifted.
  auto counts = op_counts(built("swin_t").forward);
  EXPECT_EQ(counts["aten.roll.default"], 2 * (1 + 1 + 3));
  EXPECT_EQ(counts["aten.fill_.Tensor"], 9 * (1 + 1 + 3));
  EXPECT_EQ(counts["aten.alias.default"], 12);  // nothing to cut off
  auto padded = op_counts(built("swin_t", {{"image", "256"}}).forward);
  EXPECT_EQ(padded["aten.roll.default"], 2 * (1 + 1 + 3 + 1));
  EXPECT_EQ(padded["aten.alias.default"], 0);
}

TEST(SequenceZoo, LlamaHasGroupedQueries) {
  const Model model = built("llama3_8b", {{"layers", "1"}, {"length", "16"}});
  for (const Op& op : model.forward.ops()) {
    if (model.forward.name(op) != "aten.scaled_dot_product_attention.default") continue;
    EXPECT_EQ(model.forward.shape(model.forward.inputs(op)[0])[1], 32);
    EXPECT_EQ(model.forward.shape(model.forward.inputs(op)[1])[1], 8);
    EXPECT_TRUE(model.forward.attributes(op).get_bool("enable_gqa", false));
    EXPECT_TRUE(model.forward.attributes(op).get_bool("is_causal", false));
  }
}

TEST(SequenceZoo, SettingsThatMakeNoSenseAreErrors) {
  const std::pair<const char*, Settings> cases[] = {
      {"transformer", {{"heads", "7"}}},
      {"transformer", {{"length", "0"}}},
      {"transformer", {{"enc", "100000"}}},
      {"transformer", {{"dropout", "1"}}},
      {"lstm", {{"kind", "qrnn"}}},
      {"lstm", {{"h", "-1"}}},
      {"bert", {{"length", "513"}}},
      {"bert", {{"head", "qa"}}},
      {"gpt2", {{"length", "2048"}}},
      {"gpt2", {{"heads", "5"}}},
      {"llama", {{"kv_heads", "5"}}},
      {"llama", {{"hidden", "4128"}, {"heads", "32"}, {"layers", "1"}, {"batch", "-3"}}},
      {"t5", {{"decoder_layers", "99999"}}},
      {"vit", {{"image", "225"}}},
      {"vit", {{"patch", "0"}}},
      {"swin", {{"window", "1"}}},
      {"swin", {{"dim", "100"}}},
      {"swin", {{"depths", "2,2,0,2"}}},
      {"dlrm", {{"rows", "10,-1"}}},
      {"bert", {{"hidden", "100000000"}, {"heads", "1"}}},
      {"gpt2", {{"batch", "100000000"}, {"length", "1024"}}},
  };
  for (const auto& [name, settings] : cases) {
    const Result<Model> model = build(name, settings);
    ASSERT_FALSE(model) << name << " " << settings.front().first << "=" << settings.front().second;
    EXPECT_FALSE(model.error().what.empty());
  }
}

// The lines of a file that are records of these families.
std::vector<nlohmann::json> records_of(const std::string& path, const std::set<std::string>& families) {
  std::vector<nlohmann::json> records;
  Result<LineReader> lines = LineReader::open(path);
  if (!lines) return records;
  for (auto line = lines->next(); line && *line; line = lines->next()) {
    const std::string start((*line)->substr(0, 200));  // id and family come first
    if (std::none_of(families.begin(), families.end(),
                     [&](const std::string& family) { return start.find('"' + family + '"') != std::string::npos; })) {
      continue;
    }
    records.push_back(nlohmann::json::parse(**line));
  }
  return records;
}

InputSpec input_of(const nlohmann::json& in) {
  InputSpec input{.kind = *input_kind_named(in[0].get<std::string>()), .batch = in[1], .flavour = ""};
  if (input.kind == InputKind::tokens) {
    input.size = in[2];
    input.classes = in[3];
    input.flavour = in[4];
  } else {
    input.channels = in[2];
    input.size = in[3];
    input.classes = in[4];
  }
  return input;
}

// One call that computes: its name, module and the elements of its first result.
std::string call_text(const std::string& name, const std::string& module, int64_t elements) {
  return name + " in " + module + " gives " + std::to_string(elements);
}

// What a source-level call of ours is called after dispatch; "" for calls that only lay out memory.
std::string dispatched_name(const std::string& name) {
  static const std::map<std::string, std::string> kNames = {
      {"aten.view.default", ""},
      {"aten.reshape.default", ""},
      {"aten.flatten.using_ints", ""},
      {"aten.contiguous.default", ""},
      {"aten.expand.default", ""},
      {"aten.linear.default", "product"},
      {"aten.matmul.default", "aten.bmm.default"},
      {"aten.softmax.int", "aten._softmax.default"},
      {"aten.layer_norm.default", "aten.native_layer_norm.default"},
      {"aten.dropout.default", "aten.native_dropout.default"},
      {"aten.scaled_dot_product_attention.default", "attention"},
      {"aten.adaptive_avg_pool2d.default", "aten.mean.dim"},
      {"aten.lstm.input", "aten._cudnn_rnn.default"},
      {"aten.gru.input", "aten._cudnn_rnn.default"},
      {"aten.rnn_tanh.input", "aten._cudnn_rnn.default"},
  };
  const auto found = kNames.find(name);
  return found == kNames.end() ? name : found->second;
}

std::vector<std::string> calls_of(const Graph& graph) {
  std::vector<std::string> calls;
  for (const Op& op : graph.ops()) {
    const std::string name = dispatched_name(graph.name(op));
    if (name.empty()) continue;
    calls.push_back(call_text(name, graph.module(op), graph.element_count(graph.outputs(op).front())));
  }
  return calls;
}

// The same from a capture: without the loss, layout ops, and the bias added after a product of a non-contiguous input.
std::vector<std::string> call_names(const nlohmann::json& record) {
  static const std::set<std::string> kLayout = {"aten.t.default",
                                                "aten.detach.default",
                                                "aten.clone.default",
                                                "aten._unsafe_view.default",
                                                "aten.view.default",
                                                "aten.expand.default",
                                                "aten.as_strided_.default",
                                                "aten.zeros.default",
                                                "aten.empty.memory_format",
                                                "aten.set_.source_Storage",
                                                "aten._log_softmax.default",
                                                "aten.nll_loss_forward.default"};
  std::vector<std::string> calls;
  std::string previous;
  for (const nlohmann::json& op : record["ops"]) {
    std::string name = record["op_names"][op[0].get<size_t>()];
    if (op[1] != "f" || name.starts_with("profiler.") || kLayout.contains(name)) continue;
    const bool adds_bias =
        name == "aten.add.Tensor" && previous == "product" && op[3].size() == 2 && op[3][1][2].size() == 1;
    if (name == "aten.addmm.default" || name == "aten.mm.default") name = "product";
    if (name.starts_with("aten._scaled_dot_product")) name = "attention";
    previous = name;
    if (adds_bias) continue;
    int64_t elements = 1;
    for (const nlohmann::json& extent : op[4][0][2]) elements *= extent.get<int64_t>();
    calls.push_back(call_text(name, record["modules"][op[2].get<size_t>()], elements));
  }
  return calls;
}

// Parameters of every record of these families; calls of those in float32 (autocast adds conversions).
TEST(SequenceZoo, RecordsHaveTheSameParametersAndCalls) {
  static const std::set<std::string> kFamilies = {"transformer", "lstm", "rnn", "gru", "vit", "swin"};
  std::map<std::string, int> seen;
  for (const nlohmann::json& record : records_of(FORERUN_SOURCE_DIR "/tests/data/run1.jsonl.zst", kFamilies)) {
    const std::string family = record["family"];
    const Result<Model> model = build_recorded(family, record["args"].dump(), input_of(record["input"]));
    ASSERT_TRUE(model) << record["id"] << ": " << model.error().what;
    EXPECT_EQ(model->forward.parameter_count(), record["params"].get<int64_t>()) << record["id"];
    EXPECT_EQ(model->forward.parameter_tensors(), record["param_tensors"].get<int64_t>()) << record["id"];
    if (record["run"]["precision"] != "amp_bf16") {
      EXPECT_EQ(calls_of(model->forward), call_names(record)) << record["id"];
    }
    ++seen[family];
  }
  for (const std::string& family : kFamilies) EXPECT_GT(seen[family], 0) << family;
}

}  // namespace
}  // namespace forerun::zoo
