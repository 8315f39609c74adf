#include "ingest/capture/run_compactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/line_reader.h"
#include "ingest/capture/json_walk.h"
#include "ingest/capture/record_decoder.h"

namespace forerun {
namespace {

// JSON text of a string; bytes that are not UTF-8 become U+FFFD.
std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Texts numbered in order of first appearance.
class Interned {
 public:
  size_t operator()(const std::string& text) { return index_.try_emplace(text, index_.size()).first->second; }
  [[nodiscard]] std::vector<std::string_view> in_order() const {
    std::vector<std::string_view> list(index_.size());
    for (const auto& [text, place] : index_) list[place] = text;
    return list;
  }

 private:
  std::unordered_map<std::string, size_t> index_;
};

// JSON text without the blanks between its tokens.
std::string minified(std::string_view json) {
  std::string out(json.size(), '\0');
  size_t size = 0;
  if (simdjson::minify(json.data(), json.size(), out.data(), size) != simdjson::SUCCESS) return std::string(json);
  out.resize(size);
  return out;
}

char letter_of(Root root) {
  switch (root) {
    case Root::parameter: return 'p';
    case Root::buffer: return 'b';
    case Root::state: return 's';
    case Root::input:
    case Root::none: break;
  }
  return 'i';
}

// Writes the columns of decoded tables.
class ColumnWriter {
 public:
  ColumnWriter(const RecordColumns& columns, std::string& out) : columns_(columns), out_(out) {}

  void ops() {
    Interned dtypes, shapes, attributes, nodes, tensors;
    std::string phases;
    for (const OpRow& row : columns_.ops) phases += name_of(row.phase)[0];
    const auto tensor = [&](uint32_t index) {
      const TensorRow& row = columns_.tensors[index];
      const ExtentsRow& extents = columns_.shapes[row.shape];
      const std::span<const int64_t> shape(columns_.extents.data() + extents.first, extents.rank);
      const size_t dtype = dtypes(quoted(name_of(row.dtype)));
      return tensors(fmt::format("{},{},{}", row.storage, dtype, shapes(fmt::format("[{}]", fmt::join(shape, ",")))));
    };
    out_ += ",\"ops\":{";
    rows("name", [](const OpRow& row) { return row.name; });
    append(",\"phase\":\"{}\",", phases);
    rows("module", [](const OpRow& row) { return row.module; });
    operands("inputs", tensor, [](const OpRow& row) { return std::pair(row.first_operand, row.input_count); });
    operands("outputs", tensor,
             [](const OpRow& row) { return std::pair(row.first_operand + row.input_count, row.output_count); });
    out_ += ',';
    rows("attributes", [&](const OpRow& row) { return attributes(minified(row.attributes)); });
    out_ += ',';
    rows("sequence", [](const OpRow& row) {
      return row.sequence == RecordLimits::kNoSequence ? -1 : static_cast<int64_t>(row.sequence);
    });
    out_ += ',';
    rows("node", [&](const OpRow& row) {
      return row.autograd_node.empty() ? -1 : static_cast<int64_t>(nodes(quoted(row.autograd_node)));
    });
    out_ += '}';
    const auto table = [&](std::string_view name, const Interned& entries) {
      append(",\"{}\":[{}]", name, fmt::join(entries.in_order(), ","));
    };
    table("dtypes", dtypes);
    table("shapes", shapes);
    table("attributes", attributes);
    table("nodes", nodes);
    write_tensors(tensors.in_order());
  }

  void storages() {
    std::vector<size_t> host;
    out_ += ",\"storages\":{";
    list("bytes", columns_.storages, [&](const StorageRow& row) { return row.bytes.value; });
    for (size_t i = 0; i < columns_.storages.size(); ++i) {
      if (!columns_.storages[i].on_gpu) host.push_back(i);
    }
    append(",\"host\":[{}]}}", fmt::join(host, ","));
  }

  void frees() {
    out_ += ",\"frees\":{";
    list("op", columns_.frees, [](const FreeRow& row) { return row.op; });
    out_ += ',';
    list("storage", columns_.frees, [](const FreeRow& row) { return row.storage; });
    out_ += '}';
  }

  void roots() {
    std::string kinds;
    for (const RootRow& row : columns_.roots) kinds += letter_of(row.root);
    out_ += ",\"roots\":{";
    list("storage", columns_.roots, [](const RootRow& row) { return row.storage; });
    append(",\"kind\":\"{}\",", kinds);
    list("name", columns_.roots, [](const RootRow& row) { return quoted(row.name); });
    out_ += '}';
  }

  void kernels() {
    const auto& all = columns_.kernels;
    out_ += ",\"kernels\":{";
    list("name", all, [](const KernelRow& row) { return row.name; });
    out_ += ',';
    differences("start", [](const KernelRow& row) { return row.start_ns; });
    list("ns", all, [](const KernelRow& row) { return row.ns; });
    out_ += ',';
    list("stream", all, [](const KernelRow& row) { return row.stream; });
    out_ += ',';
    differences("launch", [](const KernelRow& row) { return row.launch_ns; });
    list("launch_ns", all, [](const KernelRow& row) { return row.launch_duration_ns; });
    out_ += ',';
    list("thread", all, [](const KernelRow& row) { return row.thread; });
    out_ += ',';
    list("op", all, [](const KernelRow& row) { return std::max<int64_t>(row.op, -1); });
    out_ += '}';
  }

  void trace() {
    const auto& events = columns_.trace.events;
    std::string actions;
    for (const AllocatorEvent& event : events) actions += event.action;
    append(",\"alloc_trace\":{{\"action\":\"{}\",", actions);
    list("address", events, [](const AllocatorEvent& event) { return event.address; });
    out_ += ',';
    list("size", events, [](const AllocatorEvent& event) { return event.size; });
    out_ += ',';
    list("stream", events, [](const AllocatorEvent& event) { return event.stream; });
    out_ += ",\"marks\":[]}";
  }

 private:
  template <class... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  template <class Row, class Get>
  void list(std::string_view name, const std::vector<Row>& from, Get get) {
    append("\"{}\":[", name);
    for (size_t i = 0; i < from.size(); ++i) append("{}{}", i == 0 ? "" : ",", get(from[i]));
    out_ += ']';
  }
  template <class Get>
  void rows(std::string_view name, Get get) {
    list(name, columns_.ops, get);
  }
  template <class Tensor, class Range>
  void operands(std::string_view name, Tensor tensor, Range range) {
    append(",\"{}\":[", name);
    for (size_t i = 0; i < columns_.ops.size(); ++i) {
      const auto [first, count] = range(columns_.ops[i]);
      out_ += i == 0 ? "[" : ",[";
      for (uint32_t k = 0; k < count; ++k) append("{}{}", k == 0 ? "" : ",", tensor(columns_.operands[first + k]));
      out_ += ']';
    }
    out_ += ']';
  }
  template <class Get>
  void differences(std::string_view name, Get get) {
    int64_t before = 0;
    list(name, columns_.kernels, [&](const KernelRow& row) {
      const int64_t difference = get(row) - before;
      before = get(row);
      return difference;
    });
    out_ += ',';
  }

  // From "storage,dtype,shape" of each.
  void write_tensors(const std::vector<std::string_view>& tensors) {
    std::array<std::string, 3> parts;
    for (std::string_view tensor : tensors) {
      for (std::string& part : parts) {
        const size_t comma = tensor.find(',');
        part += (part.empty() ? "" : ",") + std::string(tensor.substr(0, comma));
        tensor.remove_prefix(comma == std::string_view::npos ? tensor.size() : comma + 1);
      }
    }
    append(",\"tensors\":{{\"storage\":[{}],\"dtype\":[{}],\"shape\":[{}]}}", parts[0], parts[1], parts[2]);
  }

  const RecordColumns& columns_;
  std::string& out_;
};

}  // namespace

class RunCompactor::Impl : JsonWalk {
 public:
  Result<std::string> compact(std::string_view line) {
    if (Status decoded = decoder_.decode(line, Fields::everything, columns_); !decoded.ok()) return decoded.error();
    for (const TensorRow& row : columns_.tensors) {
      if (row.strides != TensorRow::kUnknown) return Error{"its ops have the form of run/2 already", "", ""};
    }
    out_ = "{\"schema\":\"run/2\"";
    // The fields that tell which record this is come first.
    if (!copy(line, true)) return Error{complaint(), "", ""};
    if (!columns_.has(RecordField::backend)) out_ += ",\"backend\":\"cuda\"";
    if (!copy(line, false)) return Error{complaint(), "", ""};
    ColumnWriter writer(columns_, out_);
    if (columns_.has(RecordField::ops)) writer.ops();
    if (columns_.has(RecordField::storages)) writer.storages();
    if (columns_.has(RecordField::frees)) writer.frees();
    if (columns_.has(RecordField::roots)) writer.roots();
    if (columns_.has(RecordField::kernels)) writer.kernels();
    if (columns_.has(RecordField::alloc_trace)) writer.trace();
    out_ += '}';
    // run/2 is held to narrower ranges, so what run/1 gets away with may not read back.
    out_.reserve(out_.size() + LineReader::kPadding);
    if (Status decoded = decoder_.decode(out_, Fields::everything, columns_); !decoded.ok()) return decoded.error();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool is_rewritten(std::string_view key) const {
    const auto field = record_field_named(key);
    if (!field) return false;
    switch (*field) {
      case RecordField::schema:
      case RecordField::ops:
      case RecordField::storages:
      case RecordField::frees:
      case RecordField::roots:
      case RecordField::kernels:
      case RecordField::alloc_trace: return true;
      case RecordField::dtypes:
      case RecordField::shapes:
      case RecordField::attributes:
      case RecordField::nodes:
      case RecordField::tensors: return columns_.has(RecordField::ops);  // tables that the ops bring along
      default: return false;
    }
  }
  static bool is_head(std::string_view key) { return key == "id" || key == "status"; }

  // Copies the fields that stay as they are: id and status, or the others.
  bool copy(std::string_view line, bool heads) {
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    auto code = parser_.iterate(line.data(), line.size(), line.size() + LineReader::kPadding).get(document);
    if (code == simdjson::SUCCESS) code = document.get_object().get(object);
    if (code != simdjson::SUCCESS) return fail(code, "the record", "a JSON object");
    return each_field(object, "the record", [&](std::string_view key, Value value) {
      if (is_rewritten(key) || is_head(key) != heads) return true;
      std::string_view raw;
      if (auto wrong = simdjson::to_json_string(value).get(raw)) return fail(wrong, key.substr(0, 60), "JSON");
      fmt::format_to(std::back_inserter(out_), ",{}:{}", quoted(key), raw);
      return true;
    });
  }

  RecordDecoder decoder_;
  RecordColumns columns_;
  simdjson::ondemand::parser parser_;
  std::string out_;
};

RunCompactor::RunCompactor() : impl_(std::make_unique<Impl>()) {}
RunCompactor::RunCompactor(RunCompactor&&) noexcept = default;
RunCompactor& RunCompactor::operator=(RunCompactor&&) noexcept = default;
RunCompactor::~RunCompactor() = default;

Result<std::string> RunCompactor::compact(std::string_view line) { return impl_->compact(line); }

}  // namespace forerun
