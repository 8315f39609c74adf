#include "ingest/capture/run_record_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace forerun {
namespace {

// JSON text of a string; bytes that are not UTF-8 become U+FFFD.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view root_text(Root root) {
  switch (root) {
    case Root::parameter: return "param";
    case Root::buffer: return "buffer";
    case Root::state: return "state";
    case Root::input: return "input";
    case Root::none: break;
  }
  return "?";
}

class Writer {
 public:
  explicit Writer(const TrainingRun& run) : run_(run), graph_(run.graph) {}

  std::string line() {
    text_.reserve(256 + 160 * graph_.op_count());
    append("{{\"schema\":\"run/1\",\"id\":{},\"family\":{},\"args\":{}", quoted(run_.id), quoted(run_.family),
           run_.arguments);
    write_input();
    write_setup();
    append(",\"params\":{},\"param_tensors\":{}", graph_.parameter_count(), graph_.parameter_tensors());
    write_ops();
    write_storages();
    return std::move(text_) + "}";
  }

 private:
  template <class... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void write_input() {
    const InputSpec& in = run_.input;
    const bool tokens = in.kind == InputKind::tokens;
    append(",\"input\":[\"{}\",{},{},{},{}]", name_of(in.kind), in.batch, tokens ? in.size : in.channels,
           tokens ? in.classes : in.size, tokens ? quoted(in.flavour) : std::to_string(in.classes));
  }

  void write_setup() {
    const OptimizerSpec& optimizer = run_.setup.optimizer;
    append(
        ",\"run\":{{\"precision\":\"{}\",\"optimizer\":{{\"name\":\"{}\",\"impl\":\"{}\",\"lr\":{},\"momentum\":{},"
        "\"weight_decay\":{}}},\"channels_last\":{}}}",
        name_of(run_.setup.precision), name_of(optimizer.kind), name_of(optimizer.impl), optimizer.learning_rate,
        optimizer.momentum, optimizer.weight_decay, run_.setup.channels_last);
    const Environment& env = run_.environment;
    append(",\"env\":{{\"gpu\":{},\"torch\":{},\"cuda\":{},\"cudnn\":{}}}", quoted(env.gpu), quoted(env.torch),
           quoted(env.cuda), env.cudnn);
  }

  // A dense numbering of the names in use, in order of first use.
  struct NameList {
    std::vector<int64_t> position;  // by NameId; -1: not in use
    std::vector<NameId> names;
    explicit NameList(size_t table) : position(table, -1) {}
    void add(NameId name) {
      if (position[name.value] >= 0) return;
      position[name.value] = static_cast<int64_t>(names.size());
      names.push_back(name);
    }
  };

  void write_names(std::string_view field, const NameList& list) {
    append(",\"{}\":[", field);
    for (size_t i = 0; i < list.names.size(); ++i) {
      append("{}{}", i == 0 ? "" : ",", quoted(graph_.names()[list.names[i]]));
    }
    text_ += ']';
  }

  void write_ops() {
    NameList op_names(graph_.names().size());
    NameList modules(graph_.names().size());
    for (const Op& op : graph_.ops()) {
      op_names.add(op.name);
      modules.add(op.module);
    }
    write_names("op_names", op_names);
    write_names("modules", modules);
    text_ += ",\"ops\":[";
    for (const Op& op : graph_.ops()) {
      if (text_.back() != '[') text_ += ',';
      append("[{},\"{}\",{},", op_names.position[op.name.value], name_of(op.phase).substr(0, 1),
             modules.position[op.module.value]);
      write_operands(graph_.inputs(op));
      write_operands(graph_.outputs(op));
      append("{},{},{}]", graph_.attributes(op).to_json(), op.sequence, quoted(graph_.names()[op.autograd_node]));
    }
    text_ += ']';
  }

  void write_operands(std::span<const TensorId> tensors) {
    text_ += '[';
    for (const TensorId id : tensors) {
      if (text_.back() != '[') text_ += ',';
      const Tensor& tensor = graph_.tensor(id);
      append("[{},\"{}\",[{}]]", tensor.storage.value, name_of(tensor.dtype), fmt::join(graph_.shape(id), ","));
    }
    text_ += "],";
  }

  void write_storages() {
    text_ += ",\"storages\":[";
    std::vector<std::pair<uint32_t, size_t>> frees;
    std::string roots;
    for (size_t id = 0; id < graph_.storages().size(); ++id) {
      const Storage& storage = graph_.storages()[id];
      append("{}[{},\"{}\"]", id == 0 ? "" : ",", storage.bytes.value, storage.on_gpu ? "cuda" : "cpu");
      if (storage.freed_before.valid()) frees.emplace_back(storage.freed_before.value, id);
      if (storage.root == Root::none) continue;
      roots += fmt::format("{}\"{}\":[\"{}\",{}]", roots.empty() ? "" : ",", id, root_text(storage.root),
                           quoted(graph_.names()[storage.root_name]));
    }
    std::sort(frees.begin(), frees.end());
    text_ += "],\"frees\":[";
    for (const auto& [op, storage] : frees) append("{}[{},{}]", text_.back() == '[' ? "" : ",", op, storage);
    append("],\"roots\":{{{}}}", roots);
  }

  const TrainingRun& run_;
  const Graph& graph_;
  std::string text_;
};

}  // namespace

std::string to_run_record(const TrainingRun& run) { return Writer(run).line(); }

}  // namespace forerun
