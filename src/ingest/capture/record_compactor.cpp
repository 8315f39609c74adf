#include "ingest/capture/record_compactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/line_reader.h"
#include "base/statistics.h"
#include "ingest/capture/json_walk.h"
#include "ingest/capture/recency_ranks.h"
#include "ingest/capture/record_decoder.h"

namespace forerun {
namespace {

constexpr std::string_view kLaunches = "launches";

// JSON text of a string; bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Values numbered in order of first appearance.
class Interned {
 public:
  size_t operator()(const std::string& text) {
    const auto [place, added] = index_.try_emplace(text, order_.size());
    if (added) order_.push_back(&place->first);
    return place->second;
  }
  [[nodiscard]] std::string list() const {
    std::string text = "[";
    for (const std::string* entry : order_) text += (text.size() > 1 ? "," : "") + *entry;
    return text + ']';
  }

 private:
  std::unordered_map<std::string, size_t> index_;
  std::vector<const std::string*> order_;
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

// Hostile numbers may be far apart: what does not fit wraps around, and the result does not read back.
int64_t minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t plus(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

// Writes the columns of decoded tables as run/3 has them.
class ColumnWriter {
 public:
  ColumnWriter(const RecordColumns& columns, std::string& out) : columns_(columns), out_(out) {}

  void ops() {
    Interned attributes, nodes;
    std::string phases;
    for (const OpRow& row : columns_.ops) phases += name_of(row.phase)[0];
    number_tensors();
    out_ += ",\"ops\":{";
    rows("name", [](const OpRow& row) { return row.name; });
    append(",\"phase\":\"{}\",", phases);
    rows("module", [](const OpRow& row) { return row.module; });
    operands("inputs", [](const OpRow& row) { return std::pair(row.first_operand, row.input_count); });
    operands("outputs",
             [](const OpRow& row) { return std::pair(row.first_operand + row.input_count, row.output_count); });
    out_ += ',';
    rows("attributes", [&](const OpRow& row) { return attributes(minified(row.attributes)); });
    out_ += ',';
    sequences();
    out_ += ',';
    rows("node", [&](const OpRow& row) {
      return row.autograd_node.empty() ? -1 : static_cast<int64_t>(nodes(json_text(row.autograd_node)));
    });
    out_ += '}';
    append(",\"attributes\":{},\"nodes\":{}", attributes.list(), nodes.list());
    tensors();
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
    differences("op", columns_.frees, [](const FreeRow& row) { return static_cast<int64_t>(row.op); });
    out_ += ',';
    differences("storage", columns_.frees, [](const FreeRow& row) { return static_cast<int64_t>(row.storage); });
    out_ += '}';
  }

  void roots() {
    std::string kinds;
    for (const RootRow& row : columns_.roots) kinds += letter_of(row.root);
    out_ += ",\"roots\":{";
    list("storage", columns_.roots, [](const RootRow& row) { return row.storage; });
    append(",\"kind\":\"{}\",", kinds);
    list("name", columns_.roots, [](const RootRow& row) { return json_text(row.name); });
    out_ += '}';
  }

  void kernels() {
    const auto& all = columns_.kernels;
    out_ += ",\"kernels\":{";
    list("name", all, [](const KernelRow& row) { return row.name; });
    int64_t end = 0;
    out_ += ",\"start\":{";
    list("gaps", all, [&](const KernelRow& row) {
      const int64_t gap = minus(row.start_ns, end);
      end = plus(row.start_ns, row.ns);
      return gap;
    });
    out_ += "},";
    list("ns", all, [](const KernelRow& row) { return row.ns; });
    out_ += ',';
    list("stream", all, [](const KernelRow& row) { return row.stream; });
    out_ += ',';
    differences("op", all, [](const KernelRow& row) { return std::max<int64_t>(row.op, -1); });
    out_ += '}';
    if (columns_.has_launches) launches();
  }

  void trace() {
    const auto& events = columns_.trace.events;
    std::string actions;
    for (const AllocatorEvent& event : events) actions += event.action;
    append(",\"alloc_trace\":{{\"action\":\"{}\",\"address\":{{", actions);
    addresses();
    out_ += "},";
    sizes();
    out_ += ',';
    list("stream", events, [](const AllocatorEvent& event) { return event.stream; });
    if (columns_.trace.address_base) append(",\"address_base\":{}", *columns_.trace.address_base);
    out_ += ",\"marks\":[";
    for (const AllocatorTrace::Mark& mark : columns_.trace.marks) {
      append("{}[{},{}]", out_.back() == '[' ? "" : ",", mark.event, json_text(mark.name));
    }
    out_ += "]}";
  }

 private:
  void addresses() {
    const auto& events = columns_.trace.events;
    RecencyRanks ranks(events.size());
    std::unordered_map<int64_t, size_t> latest;
    std::vector<int64_t> fresh;
    size_t now = 0;
    list("recency", events, [&](const AllocatorEvent& event) {
      const auto [seen, is_new] = latest.try_emplace(event.address, now);
      const size_t rank = is_new ? 0 : ranks.rank(seen->second);
      if (is_new) {
        fresh.push_back(event.address);
      } else {
        ranks.remove(seen->second);
      }
      ranks.add(now);
      seen->second = now++;
      return rank;
    });
    out_ += ',';
    differences("new", fresh, [](int64_t address) { return address; });
  }

  // Blocks and segments are freed with the size they have; where that is so throughout, the sizes of frees are left out.
  void sizes() {
    const auto& events = columns_.trace.events;
    std::vector<int64_t> told;
    KnownSizes known;
    const bool regular = std::all_of(events.begin(), events.end(), [&](const AllocatorEvent& event) {
      const auto size = known.size_of(event);
      if (!size) told.push_back(event.size);
      known.take(event);
      return !size || *size == event.size;
    });
    if (!regular) return list("size", events, [](const AllocatorEvent& event) { return event.size; });
    out_ += "\"size\":{";
    list("told", told, [](int64_t size) { return size; });
    out_ += '}';
  }

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
  template <class Row, class Get>
  void differences(std::string_view name, const std::vector<Row>& from, Get get) {
    append("\"{}\":{{", name);
    int64_t before = 0;
    list("differences", from, [&](const Row& row) {
      const int64_t difference = minus(get(row), before);
      before = get(row);
      return difference;
    });
    out_ += '}';
  }
  template <class Get>
  void rows(std::string_view name, Get get) {
    list(name, columns_.ops, get);
  }

  // Differences between the ops that have a number, null for those that have none.
  void sequences() {
    uint32_t before = 0;
    out_ += "\"sequence\":{";
    rows("differences", [&](const OpRow& row) -> std::string {
      if (row.sequence == RecordLimits::kNoSequence) return "null";
      const int64_t difference = static_cast<int64_t>(row.sequence) - before;
      before = row.sequence;
      return std::to_string(difference);
    });
    out_ += '}';
  }

  // Numbers the distinct tensors in the order in which ops name them, inputs before outputs, as operands lie.
  void number_tensors() {
    std::unordered_map<std::string, size_t> known;
    for (const uint32_t operand : columns_.operands) {
      const TensorRow& row = columns_.tensors[operand];
      const auto [place, added] = known.try_emplace(
          fmt::format("{},{},{},{},{}", row.storage, static_cast<int>(row.dtype), shape_text(row.shape),
                      row.strides < 0 ? std::to_string(row.strides) : shape_text(static_cast<uint32_t>(row.strides)),
                      row.offset),
          distinct_.size());
      back_.push_back(distinct_.size() - place->second);
      if (added) distinct_.push_back(&row);
    }
  }

  template <class Range>
  void operands(std::string_view name, Range range) {
    append(",\"{}\":{{\"back\":[", name);
    for (size_t i = 0; i < columns_.ops.size(); ++i) {
      const auto [first, count] = range(columns_.ops[i]);
      out_ += i == 0 ? "[" : ",[";
      for (uint32_t k = first; k < first + count; ++k) append("{}{}", k == first ? "" : ",", back_[k]);
      out_ += ']';
    }
    out_ += "]}";
  }

  [[nodiscard]] std::string shape_text(uint32_t shape) const {
    const ExtentsRow& row = columns_.shapes[shape];
    return fmt::format(
        "[{}]", fmt::join(columns_.extents.begin() + row.first, columns_.extents.begin() + row.first + row.rank, ","));
  }

  void tensors() {
    Interned dtypes, shapes;
    const bool strided = std::any_of(distinct_.begin(), distinct_.end(),
                                     [](const TensorRow* row) { return row->strides != TensorRow::kUnknown; });
    out_ += ",\"tensors\":{";
    differences("storage", distinct_, [](const TensorRow* row) { return static_cast<int64_t>(row->storage); });
    out_ += ',';
    list("dtype", distinct_, [&](const TensorRow* row) { return dtypes(json_text(name_of(row->dtype))); });
    out_ += ',';
    list("shape", distinct_, [&](const TensorRow* row) { return shapes(shape_text(row->shape)); });
    if (strided) {
      out_ += ',';
      list("strides", distinct_, [&](const TensorRow* row) {
        return row->strides < 0 ? row->strides
                                : static_cast<int64_t>(shapes(shape_text(static_cast<uint32_t>(row->strides))));
      });
      out_ += ',';
      list("offset", distinct_, [](const TensorRow* row) { return row->offset; });
    }
    append("}},\"dtypes\":{},\"shapes\":{}", dtypes.list(), shapes.list());
  }

  void launches() {
    std::vector<double> durations;
    uint64_t sum = 0;
    for (const KernelRow& row : columns_.kernels) {
      durations.push_back(static_cast<double>(row.launch_duration_ns));
      sum += static_cast<uint64_t>(row.launch_duration_ns);
    }
    append(",\"{}\":{{\"count\":{},\"ns\":{}", kLaunches, durations.size(), sum);
    std::sort(durations.begin(), durations.end());
    if (!durations.empty()) {
      append(",\"p10_ns\":{},\"p50_ns\":{},\"p90_ns\":{}", sorted_quantile(durations, 0.1),
             sorted_quantile(durations, 0.5), sorted_quantile(durations, 0.9));
    }
    out_ += '}';
  }

  const RecordColumns& columns_;
  std::string& out_;
  std::vector<const TensorRow*> distinct_;  // tensors, by number
  std::vector<size_t> back_;                // by operand: how far behind the newest tensor; 0: it is new
};

}  // namespace

class RecordCompactor::Impl : JsonWalk {
 public:
  Result<std::string> compact_run(std::string_view line) {
    if (Status decoded = decoder_.decode(line, Fields::everything, columns_); !decoded.ok()) return decoded.error();
    out_ = "{\"schema\":\"run/3\"";
    // The fields that tell which record this is come first.
    const auto stays = [&](std::string_view key) { return !is_rewritten(key); };
    if (!copy(line, [&](std::string_view key) { return is_head(key) && stays(key); })) return error();
    if (!columns_.has(RecordField::backend)) out_ += ",\"backend\":\"cuda\"";
    if (!copy(line, [&](std::string_view key) { return !is_head(key) && stays(key); })) return error();
    ColumnWriter writer(columns_, out_);
    if (columns_.has(RecordField::ops)) writer.ops();
    if (columns_.has(RecordField::storages)) writer.storages();
    if (columns_.has(RecordField::frees)) writer.frees();
    if (columns_.has(RecordField::roots)) writer.roots();
    if (columns_.has(RecordField::kernels)) writer.kernels();
    if (columns_.has(RecordField::alloc_trace)) writer.trace();
    out_ += '}';
    // Columns are held to narrower ranges, so what run/1 gets away with may not read back.
    out_.reserve(out_.size() + LineReader::kPadding);
    if (Status decoded = decoder_.decode(out_, Fields::everything, columns_); !decoded.ok()) return decoded.error();
    return std::move(out_);
  }

  Result<std::string> compact_sample(std::string_view line) {
    out_ = "{\"schema\":\"op/1\"";
    const auto kept = [](std::string_view key) {
      return key != "schema" && key != "id" && key != "spread" && key != "kernels";
    };
    if (!copy(line, kept) || !add_spread(line) || !add_kernels(line)) return error();
    return std::move(out_) + '}';
  }

 private:
  [[nodiscard]] Error error() const { return {complaint(), "", ""}; }

  [[nodiscard]] bool is_rewritten(std::string_view key) const {
    if (key == kLaunches) return columns_.has_launches;
    const auto field = record_field_named(key);
    if (!field) return false;
    switch (*field) {
      case RecordField::schema:
      case RecordField::ops:
      case RecordField::storages:
      case RecordField::frees:
      case RecordField::roots:
      case RecordField::parametric:  // it names entries of tables that are numbered anew
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
  // How far the readings of a sample lie apart, in hundredths.
  bool add_spread(std::string_view line) {
    simdjson::ondemand::document document;
    double spread = 0;
    auto code = parser_.iterate(line.data(), line.size(), line.size() + LineReader::kPadding).get(document);
    if (code == simdjson::SUCCESS) code = document["spread"].get_double().get(spread);
    if (code == simdjson::NO_SUCH_FIELD) return true;
    if (code != simdjson::SUCCESS) return fail(code, "spread", "a number");
    fmt::format_to(std::back_inserter(out_), ",\"spread\":{}", std::round(spread * 100) / 100);
    return true;
  }

  // The kernels of a sample as one entry without a name: how long all took, and how many they were.
  bool add_kernels(std::string_view line) {
    simdjson::ondemand::document document;
    simdjson::ondemand::array kernels;
    auto code = parser_.iterate(line.data(), line.size(), line.size() + LineReader::kPadding).get(document);
    if (code == simdjson::SUCCESS) code = document["kernels"].get_array().get(kernels);
    if (code == simdjson::NO_SUCH_FIELD) return true;
    if (code != simdjson::SUCCESS) return fail(code, "kernels", "a list");
    double us = 0;
    int64_t count = 0;
    for (auto item : kernels) {
      simdjson::ondemand::array entries;
      if (auto wrong = item.get_array().get(entries)) return fail(wrong, "a kernel", "a list");
      size_t place = 0;
      double lasted = 0;
      int64_t times = 1;
      for (auto entry : entries) {
        simdjson::error_code wrong = simdjson::SUCCESS;
        if (place == 1) wrong = entry.get_double().get(lasted);
        if (place == 2) wrong = entry.get_int64().get(times);
        if (wrong != simdjson::SUCCESS) return fail(wrong, "a kernel", "[name, microseconds, how many]");
        ++place;
      }
      us += lasted;
      count += times;
    }
    if (count > 0) fmt::format_to(std::back_inserter(out_), R"(,"kernels":[["",{:.3f},{}]])", us, count);
    return true;
  }
  static bool is_head(std::string_view key) { return key == "id" || key == "status"; }

  // Copies the fields that `chosen` picks, as they stand.
  template <class Chosen>
  bool copy(std::string_view line, Chosen chosen) {
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    auto code = parser_.iterate(line.data(), line.size(), line.size() + LineReader::kPadding).get(document);
    if (code == simdjson::SUCCESS) code = document.get_object().get(object);
    if (code != simdjson::SUCCESS) return fail(code, "the record", "a JSON object");
    return each_field(object, "the record", [&](std::string_view key, Value value) {
      if (!chosen(key)) return true;
      std::string_view raw;
      if (auto wrong = simdjson::to_json_string(value).get(raw)) return fail(wrong, key.substr(0, 60), "JSON");
      fmt::format_to(std::back_inserter(out_), ",{}:{}", json_text(key), raw);
      return true;
    });
  }

  RecordDecoder decoder_;
  RecordColumns columns_;
  simdjson::ondemand::parser parser_;
  std::string out_;
};

RecordCompactor::RecordCompactor() : impl_(std::make_unique<Impl>()) {}
RecordCompactor::RecordCompactor(RecordCompactor&&) noexcept = default;
RecordCompactor& RecordCompactor::operator=(RecordCompactor&&) noexcept = default;
RecordCompactor::~RecordCompactor() = default;

Result<std::string> RecordCompactor::compact_run(std::string_view line) { return impl_->compact_run(line); }
Result<std::string> RecordCompactor::compact_sample(std::string_view line) { return impl_->compact_sample(line); }

}  // namespace forerun
