#include "cost/calibrated/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/small_file.h"
#include "base/statistics.h"
#include "derive/value.h"
#include "graph/graph_builder.h"

namespace forerun {
namespace {

using Json = nlohmann::json;

constexpr size_t kLargestFile = size_t{64} << 20;
constexpr size_t kMostOps = 200'000;
constexpr size_t kMostTensors = 16'384;       // of an op
constexpr size_t kMostExtents = 8;            // of a tensor
constexpr int64_t kMostElements = 1LL << 40;  // of a tensor, holes included
constexpr double kMostUs = 1e9;
constexpr size_t kMostRounds = 1000;
constexpr size_t kMostText = 256;
constexpr const char* kRemedy = "write the file again with `python -m forerun.calibrate`";

// Reads fields and keeps the first fault, with the place where it is.
class MachineReader {
 public:
  explicit MachineReader(std::string file) : file_(std::move(file)) {}

  [[nodiscard]] bool ok() const { return !fault_; }
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }
  void fail(const std::string& place, std::string what, std::string remedy = kRemedy) {
    if (!fault_) fault_ = Error{std::move(what), fmt::format("{}, {}", file_, place), std::move(remedy)};
  }

  const Json* field(const Json& object, const char* name, const std::string& place, bool needed = true) {
    if (!object.is_object()) {
      fail(place, "is not a JSON object");
      return nullptr;
    }
    const auto found = object.find(name);
    if (found != object.end()) return &*found;
    if (needed) fail(place + "." + name, "is missing");
    return nullptr;
  }
  std::string text(const Json& object, const char* name, const std::string& place, bool needed) {
    const Json* value = field(object, name, place, needed);
    if (value == nullptr) return "";
    if (!value->is_string() || value->get_ref<const std::string&>().size() > kMostText) {
      fail(place + "." + name, "is not a short text");
      return "";
    }
    return value->get<std::string>();
  }
  double number(const Json& value, const std::string& place, double low, double high) {
    const double found = value.is_number() ? value.get<double>() : std::nan("");
    if (found >= low && found <= high) return found;
    fail(place, fmt::format("is not a number between {} and {}", low, high));
    return low;
  }
  double number(const Json& object, const char* name, const std::string& place, double low, double high, bool needed) {
    const Json* value = field(object, name, place, needed);
    return value == nullptr ? 0 : number(*value, place + "." + name, low, high);
  }

 private:
  std::string file_;
  std::optional<Error> fault_;
};

std::optional<Shape> extents(MachineReader& reader, const Json& value, const std::string& place) {
  Shape shape;
  if (!value.is_array() || value.size() > kMostExtents) {
    reader.fail(place, fmt::format("is not a list of at most {} extents", kMostExtents));
    return std::nullopt;
  }
  for (const Json& extent : value) {
    if (!extent.is_number_integer() || extent.get<double>() < 0 ||
        extent.get<double>() > static_cast<double>(kMostElements)) {
      reader.fail(place, "has an extent that is no whole number of elements");
      return std::nullopt;
    }
    shape.push_back(extent.get<int64_t>());
  }
  return shape;
}

// Elements from the first to the last in memory; nothing where they are too many.
std::optional<int64_t> extent_of(const ReadTensor& tensor) {
  double count = 1;
  double last = 1;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    count *= static_cast<double>(tensor.shape[d]);
    if (tensor.strides) {
      last +=
          static_cast<double>(std::max<int64_t>(tensor.shape[d] - 1, 0)) * static_cast<double>((*tensor.strides)[d]);
    }
  }
  if (count > static_cast<double>(kMostElements) || last > static_cast<double>(kMostElements)) return std::nullopt;
  if (count == 0) return 0;
  return static_cast<int64_t>(tensor.strides ? last : count);
}

std::optional<ReadTensor> tensor_of(MachineReader& reader, const Json& value, const std::string& place) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_array() || value.size() < 2 || value.size() > 3 || !value[0].is_string()) {
    reader.fail(place, "is not [dtype, shape, strides]");
    return std::nullopt;
  }
  const auto dtype = dtype_named(value[0].get_ref<const std::string&>());
  if (!dtype) {
    reader.fail(place, "has an unknown dtype");
    return std::nullopt;
  }
  ReadTensor tensor{.dtype = *dtype};
  const auto shape = extents(reader, value[1], place);
  if (!shape) return std::nullopt;
  tensor.shape = *shape;
  if (value.size() == 3 && !value[2].is_null()) {
    tensor.strides = extents(reader, value[2], place);
    if (!tensor.strides) return std::nullopt;
    if (tensor.strides->size() != tensor.shape.size()) reader.fail(place, "has strides of another rank than its shape");
  }
  if (reader.ok() && !extent_of(tensor)) reader.fail(place, "is too large for any GPU");
  if (!reader.ok()) return std::nullopt;
  return tensor;
}

std::vector<std::optional<ReadTensor>> tensors_of(MachineReader& reader, const Json& op, const char* name,
                                                  const std::string& place) {
  std::vector<std::optional<ReadTensor>> tensors;
  const Json* list = reader.field(op, name, place);
  if (list == nullptr) return tensors;
  if (!list->is_array() || list->size() > kMostTensors) {
    reader.fail(place + "." + name, "is not a list of tensors");
    return tensors;
  }
  for (const Json& value : *list) {
    if (!reader.ok()) break;
    tensors.push_back(tensor_of(reader, value, place + "." + name));
  }
  return tensors;
}

template <class To>
AttributeValue list_of(const Json& array) {
  std::vector<To> list;
  for (const Json& value : array) list.push_back(value.get<To>());
  return list;
}

// Its JSON text; nothing of what nests deeper than any attribute does.
JsonText text_of_nested(const Json& value) {
  const auto nests = [](const auto& self, const Json& inner, int depth) -> bool {
    if (!inner.is_structured()) return false;
    return depth == 0 ||
           std::any_of(inner.begin(), inner.end(), [&](const Json& v) { return self(self, v, depth - 1); });
  };
  return JsonText{nests(nests, value, 6) ? std::string() : value.dump()};
}

AttributeValue attribute_of(const Json& value) {
  if (value.is_null()) return std::monostate();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return value.get<double>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return text_of_nested(value);
  const auto all = [&](auto is) { return std::all_of(value.begin(), value.end(), is); };
  if (all([](const Json& v) { return v.is_number_integer(); })) return list_of<int64_t>(value);
  if (all([](const Json& v) { return v.is_number(); })) return list_of<double>(value);
  if (all([](const Json& v) { return v.is_boolean(); })) return list_of<bool>(value);
  return text_of_nested(value);
}

OpReading op_of(MachineReader& reader, const Json& value, const std::string& place) {
  OpReading op;
  op.op = reader.text(value, "op", place, true);
  if (reader.ok() && op.op.empty()) reader.fail(place + ".op", "is empty");
  const auto precision = parse_precision(reader.text(value, "precision", place, true));
  if (reader.ok() && !precision) reader.fail(place + ".precision", precision.error().what);
  if (precision) op.precision = *precision;
  op.inputs = tensors_of(reader, value, "inputs", place);
  op.outputs = tensors_of(reader, value, "outputs", place);
  if (const Json* attributes = reader.field(value, "attributes", place)) {
    if (!attributes->is_object()) {
      reader.fail(place + ".attributes", "is not a JSON object");
    } else {
      for (const auto& [key, item] : attributes->items()) op.attributes.set(key, attribute_of(item));
    }
  }
  op.us = reader.number(value, "us", place, 1e-3, kMostUs, true);
  op.span_us = reader.number(value, "span_us", place, 1e-3, kMostUs, true);
  op.spread = reader.number(value, "spread", place, 0, 1e3, true);
  op.kernels = static_cast<int64_t>(reader.number(value, "kernels", place, 1, 1e7, true));
  op.again_us = reader.number(value, "again_us", place, 1e-3, kMostUs, false);
  if (const auto within = value.find("within"); within != value.end()) {
    if (!within->is_boolean()) reader.fail(place + ".within", "is neither true nor false");
    op.within = within->is_boolean() && within->get<bool>();
  }
  return op;
}

void read_gpu(MachineReader& reader, const Json& gpu, Machine& machine) {
  const Json* device = reader.field(gpu, "device", "gpu");
  if (device == nullptr) return;
  DeviceFacts facts;
  facts.name = reader.text(*device, "name", "gpu.device", true);
  if (reader.ok() && facts.name.empty()) reader.fail("gpu.device.name", "is empty");
  const auto fact = [&](const char* name, double high) {
    return reader.number(*device, name, "gpu.device", 0, high, false);
  };
  facts.compute_capability = static_cast<int>(fact("compute_capability", 1000));
  facts.sm_count = static_cast<int64_t>(fact("sm_count", 1e5));
  facts.memory_mib = fact("memory_mib", 1e8);
  facts.l2_kib = fact("l2_kib", 1e8);
  facts.clock_mhz = fact("clock_mhz", 1e5);
  facts.power_w = fact("power_w", 1e5);
  machine.device = facts;
  machine.queued_kernel_us = reader.number(gpu, "queued_kernel_us", "gpu", 0, 1e5, false);
  const Json* ops = reader.field(gpu, "ops", "gpu");
  if (ops == nullptr) return;
  if (!ops->is_array() || ops->size() > kMostOps) {
    reader.fail("gpu.ops", fmt::format("is not a list of at most {} ops", kMostOps));
    return;
  }
  for (size_t i = 0; i < ops->size() && reader.ok(); ++i) {
    machine.ops.push_back(op_of(reader, (*ops)[i], fmt::format("gpu.ops[{}]", i)));
  }
}

std::vector<HostCalibration> host_rounds(MachineReader& reader, const Json& host, const char* name) {
  std::vector<HostCalibration> rounds;
  const Json* list = reader.field(host, name, "host", false);
  if (list == nullptr) return rounds;
  const std::string place = fmt::format("host.{}", name);
  if (!list->is_array() || list->size() > kMostRounds) {
    reader.fail(place, "is not a list of readings");
    return rounds;
  }
  const auto readings = [&](const Json& object, auto& found) {
    if (!object.is_object()) {
      reader.fail(place, "has a round that is no JSON object");
      return;
    }
    for (const auto& [kind, value] : object.items()) {
      if (kind == "backward" || kind.size() > kMostText) continue;
      found.emplace_back(kind, reader.number(value, place, 1e-4, kMostUs));
    }
  };
  for (const Json& round : *list) {
    HostCalibration one;
    readings(round, one.forward);
    if (reader.ok() && round.contains("backward")) readings(round["backward"], one.backward);
    if (!reader.ok()) break;
    rounds.push_back(std::move(one));
  }
  return rounds;
}

void read_links(MachineReader& reader, const Json& links, Machine& machine) {
  if (!links.is_array() || links.size() > kMostOps) {
    reader.fail("links", "is not a list");
    return;
  }
  for (const Json& value : links) {
    LinkReading link;
    link.kind = reader.text(value, "kind", "links", true);
    link.bytes = reader.number(value, "bytes", "links", 1, 1e15, true);
    link.us = reader.number(value, "us", "links", 1e-3, kMostUs, true);
    link.gpus = std::max<int64_t>(1, static_cast<int64_t>(reader.number(value, "gpus", "links", 1, 1e6, false)));
    if (!reader.ok()) return;
    machine.links.push_back(std::move(link));
  }
}

Machine read_whole(MachineReader& reader, const Json& root) {
  Machine machine;
  const std::string format = reader.text(root, "format", "the file", true);
  if (reader.ok() && format != kMachineFormat) {
    reader.fail("format", fmt::format("unknown format \"{}\"", format),
                fmt::format("known is {}; {}", kMachineFormat, kRemedy));
  }
  const Json* card = reader.ok() ? reader.field(root, "card", "the file") : nullptr;
  if (card == nullptr) return machine;
  const auto text = [&](const char* name) { return reader.text(*card, name, "card", false); };
  machine.card = {.gpu = text("gpu"),
                  .driver = text("driver"),
                  .cuda = text("cuda"),
                  .torch = text("torch"),
                  .cpu = text("cpu"),
                  .host = text("host"),
                  .date = text("date"),
                  .minutes = reader.number(*card, "minutes", "card", 0, 1e7, false)};
  if (const Json* gpu = reader.field(root, "gpu", "the file", false)) read_gpu(reader, *gpu, machine);
  if (!reader.ok()) return machine;
  if (const Json* host = reader.field(root, "host", "the file", false)) {
    machine.host_cuda = host_rounds(reader, *host, "cuda");
    machine.host_cpu = host_rounds(reader, *host, "cpu");
  }
  if (const Json* links = reader.field(root, "links", "the file", false)) read_links(reader, *links, machine);
  if (reader.ok() && machine.ops.empty() && machine.host_cuda.empty() && machine.host_cpu.empty()) {
    reader.fail("the file", "holds no reading of a GPU or a host");
  }
  return machine;
}

using Readings = std::vector<std::pair<std::string, double>>;

Readings medians(const std::vector<const Readings*>& rounds) {
  Readings found;
  if (rounds.empty()) return found;
  for (const auto& [kind, first] : *rounds.front()) {
    std::vector<double> values;
    for (const Readings* round : rounds) {
      for (const auto& [name, value] : *round) {
        if (name == kind) values.push_back(value);
      }
    }
    if (values.size() == rounds.size()) found.emplace_back(kind, quantile_in_place(values, 0.5));
  }
  return found;
}

TensorId add_tensor(GraphBuilder& builder, const ReadTensor& tensor) {
  const StorageId storage = builder.add_storage(Bytes(extent_of(tensor).value_or(0) * size_of(tensor.dtype)));
  return builder.add_tensor(storage, tensor.dtype, tensor.shape,
                            tensor.strides ? *tensor.strides : derive::contiguous_strides(tensor.shape));
}

}  // namespace

std::string MachineCard::missing() const {
  const std::pair<const char*, const std::string*> fields[] = {{"host", &host}, {"torch", &torch}, {"date", &date}};
  for (const auto& [name, value] : fields) {
    if (value->empty()) return name;
  }
  if (!gpu.empty() && driver.empty()) return "driver";
  if (!gpu.empty() && cuda.empty()) return "cuda";
  return "";
}

Result<Machine> machine_from(const std::string& text, const std::string& where) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return Error{"is not JSON", where, kRemedy};
  MachineReader reader(where);
  Machine machine = read_whole(reader, root);
  if (!reader.ok()) return *reader.fault();
  return machine;
}

Result<Machine> read_machine(const std::filesystem::path& path) {
  const Result<std::string> text = read_small_file(path, {kLargestFile, kRemedy});
  return text ? machine_from(*text, path.string()) : Result<Machine>(text.error());
}

HostCalibration median_of(const std::vector<HostCalibration>& rounds) {
  std::vector<const Readings*> forward;
  std::vector<const Readings*> backward;
  for (const HostCalibration& round : rounds) {
    forward.push_back(&round.forward);
    backward.push_back(&round.backward);
  }
  return {medians(forward), medians(backward)};
}

Graph graph_of(const std::vector<const OpReading*>& readings) {
  GraphBuilder builder;
  for (const OpReading* reading : readings) {
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    for (const auto& tensor : reading->inputs) {
      if (tensor) inputs.push_back(add_tensor(builder, *tensor));
    }
    for (const auto& tensor : reading->outputs) {
      if (tensor) outputs.push_back(add_tensor(builder, *tensor));
    }
    builder.add_op({.name = reading->op, .inputs = inputs, .outputs = outputs, .attributes = &reading->attributes});
  }
  return builder.finish();
}

}  // namespace forerun
