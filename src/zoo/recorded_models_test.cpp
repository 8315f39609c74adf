// The convolutional families against measured runs: parameters (number, names, order) and the forward pass (ops in
// order, modules, shapes, strides, epsilons, in-place or not) equal what PyTorch recorded.
//
// Captured ops are what PyTorch dispatched, built ops are source-level calls; `Call` is their common ground: a
// dispatched op is named after the call it came from, and ops that only dispatch adds (detach, casts) are dropped.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/line_reader.h"
#include "zoo/zoo.h"

namespace forerun::zoo {
namespace {

using Json = nlohmann::json;

struct Call {
  std::string name;
  std::string module;
  Shape result;
  std::string details;  // stride, padding, groups; eps; p

  bool operator==(const Call&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Call& call) {
    out << call.module << " " << call.name << " [";
    for (const int64_t extent : call.result) out << extent << ",";
    return out << "] " << call.details;
  }
};

// Names of dispatched ops and of calls, both mapped to one name; "" drops the op.
std::string common_name(const std::string& name) {
  static const std::map<std::string, std::string> names = {
      {"aten.detach.default", ""},
      {"aten.t.default", ""},
      {"aten._to_copy.default", ""},
      {"aten.empty.memory_format", ""},
      {"aten.empty_like.default", ""},
      {"aten.bernoulli_.float", ""},
      {"aten.div_.Scalar", ""},
      {"aten.as_strided_.default", ""},
      {"aten.cudnn_batch_norm.default", "aten.batch_norm.default"},
      {"aten.native_batch_norm.default", "aten.batch_norm.default"},
      {"aten.native_layer_norm.default", "aten.layer_norm.default"},
      {"aten.native_dropout.default", "aten.dropout.default"},
      {"aten.mul_.Tensor", "aten.dropout_.default"},
      {"aten.addmm.default", "aten.linear.default"},
      {"aten.max_pool2d_with_indices.default", "aten.max_pool2d.default"},
      {"aten._adaptive_avg_pool2d.default", "aten.adaptive_avg_pool2d.default"},
      {"aten.flatten.using_ints", "aten.view.default"},
      {"aten._unsafe_view.default", "aten.view.default"},
      {"aten.contiguous.default", "aten.clone.default"},
  };
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

std::string details_of(const std::string& name, const std::function<std::string(const char*)>& attribute) {
  if (name == "aten.convolution.default") {
    return attribute("stride") + attribute("padding") + attribute("groups") + attribute("transposed");
  }
  if (name == "aten.batch_norm.default") {
    const std::string momentum = attribute("momentum") + attribute("exponential_average_factor");
    return attribute("eps") + attribute("epsilon") + "," + momentum;
  }
  if (name == "aten.layer_norm.default") return attribute("eps");
  if (name == "aten.dropout.default") return attribute("p");
  return "";
}

std::string renamed(const std::string& family, std::string path) {
  if (family != "alexnet") return path;  // recorded with module names of its own
  if (path.starts_with("cls")) path.replace(0, 3, "classifier");
  return path == "pool" ? "avgpool" : path;
}

std::vector<Call> captured_calls(const Json& record) {
  std::vector<Call> calls;
  std::set<std::string> linear;
  for (const Json& op : record["ops"]) {
    const auto name = record["op_names"][op[0].get<size_t>()].get<std::string>();
    if (name == "aten._log_softmax.default") break;
    const auto module = record["modules"][op[2].get<size_t>()].get<std::string>();
    const std::string call = common_name(name);
    if (op[1] != "f" || name.starts_with("profiler.") || call.empty()) continue;
    const Json& out = op[4][0];
    if (call == "aten.add_.Tensor" && out[1] == "int64") continue;  // batch norm's counter
    if (name == "aten.addmm.default") linear.insert(module);
    const Json& attributes = op[5];
    const std::string details = details_of(
        call, [&](const char* key) { return attributes.contains(key) ? attributes[key].dump() : std::string(); });
    calls.push_back({call, renamed(record["family"], module), out[2].get<Shape>(), details});
    if (name == "aten.mean.dim" && attributes["dim"] == Json({-1, -2}))
      calls.back().name = "aten.adaptive_avg_pool2d.default";
  }
  // A linear layer over images flattens and restores them; SiLU in place keeps a copy of its input; flattening images
  // that lie with channels last copies them.
  std::vector<Call> kept;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call* next = i + 1 < calls.size() ? &calls[i + 1] : nullptr;
    const bool flattened = next != nullptr && next->name == "aten.view.default" && next->result.size() == 2;
    const bool copied =
        calls[i].name == "aten.clone.default" && next != nullptr && (flattened || next->name == "aten.silu_.default");
    const bool folded = calls[i].name == "aten.view.default" && linear.contains(calls[i].module);
    if (!copied && !folded) kept.push_back(calls[i]);
    if (!kept.empty() && folded && kept.back().name == "aten.linear.default") kept.back().result = calls[i].result;
  }
  return kept;
}

std::vector<Call> built_calls(const Graph& graph) {
  std::vector<Call> calls;
  for (const Op& op : graph.ops()) {
    const TensorId out = graph.outputs(op).front();
    if (graph.tensor(out).dtype == DType::int64) continue;
    const std::string name = common_name(graph.name(op));
    const Json attributes = Json::parse(graph.attributes(op).to_json());
    const std::string details = details_of(
        name, [&](const char* key) { return attributes.contains(key) ? attributes[key].dump() : std::string(); });
    const auto shape = graph.shape(out);
    calls.push_back({name, graph.module(op), {shape.begin(), shape.end()}, details});
  }
  return calls;
}

std::vector<std::string> captured_parameters(const Json& record) {
  std::map<int64_t, std::string> ordered;
  for (const auto& [id, root] : record["roots"].items()) {
    if (root[0] == "param") ordered[std::stoll(id)] = renamed(record["family"], root[1].get<std::string>());
  }
  std::vector<std::string> names;
  for (const auto& [id, name] : ordered) names.push_back(name);
  return names;
}

std::vector<std::string> built_parameters(const Graph& graph) {
  std::vector<std::string> names;
  for (const TensorId id : graph.parameters()) {
    names.push_back(graph.names()[graph.storage(graph.tensor(id).storage).root_name]);
  }
  return names;
}

void compare(const Json& record) {
  const auto id = record["id"].get<std::string>();
  SCOPED_TRACE(id + " " + record["args"].dump());
  const Json& in = record["input"];
  const InputSpec input = {.kind = *input_kind_named(in[0].get<std::string>()),
                           .batch = in[1],
                           .channels = in[2],
                           .size = in[3],
                           .classes = in[4]};
  const Result<Model> model = build_recorded(record["family"].get<std::string>(), record["args"].dump(), input);
  ASSERT_TRUE(model) << model.error().message();
  const Graph& graph = model->forward;
  EXPECT_EQ(graph.parameter_count(), record["params"].get<int64_t>());
  EXPECT_EQ(graph.parameter_tensors(), record["param_tensors"].get<int64_t>());
  EXPECT_EQ(built_parameters(graph), captured_parameters(record));
  const std::vector<Call> expected = captured_calls(record);
  const std::vector<Call> actual = built_calls(graph);
  ASSERT_FALSE(expected.empty());
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i)
    ASSERT_EQ(actual[i], expected[i]) << "call " << i;
  EXPECT_EQ(actual.size(), expected.size());
}

// Compares every record of the given families; returns how many there were.
int compare_file(const std::string& path, const std::set<std::string>& families) {
  Result<LineReader> reader = LineReader::open(path);
  EXPECT_TRUE(reader) << path;
  int compared = 0;
  while (reader && !::testing::Test::HasFatalFailure()) {
    const auto line = reader->next();
    EXPECT_TRUE(line) << path;
    if (!line || !*line) break;
    const std::string_view text = **line;
    const size_t begin = text.find("\"family\":\"") + 10;
    if (!families.contains(std::string(text.substr(begin, text.find('"', begin) - begin)))) continue;
    compare(Json::parse(text));
    ++compared;
  }
  return compared;
}

// One record a family; ZooCheck compares all of them, op by op.
TEST(RecordedModels, HaveTheSameParametersAndCalls) {
  const std::set<std::string> families = {"alexnet",    "convnext",   "efficientnet", "mnasnet",    "resnet",
                                          "shufflenet", "squeezenet", "vgg",          "wide_resnet"};
  EXPECT_EQ(compare_file(FORERUN_SOURCE_DIR "/tests/data/run1.jsonl.zst", families), 9);
}

}  // namespace
}  // namespace forerun::zoo
