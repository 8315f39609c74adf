#include "ingest/capture/column_decoder.h"

#include <algorithm>

namespace forerun {
namespace {

constexpr int64_t kMostIndex = INT32_MAX;

std::optional<Root> root_of(char letter) {
  switch (letter) {
    case 'p': return Root::parameter;
    case 'b': return Root::buffer;
    case 's': return Root::state;
    case 'i': return Root::input;
    default: return std::nullopt;
  }
}

}  // namespace

void ColumnDecoder::start(RecordColumns& columns) {
  columns_ = &columns;
  has_ops_ = false;
  for (auto* table : {&dtypes_, &attributes_, &nodes_}) table->clear();
  shapes_.clear();
  extents_.clear();
  for (auto* column : {&tensor_storage_, &tensor_dtype_, &tensor_shape_}) column->clear();
}

bool ColumnDecoder::dtypes(Value value) { return texts(value, "dtypes", dtypes_); }
bool ColumnDecoder::nodes(Value value) { return texts(value, "nodes", nodes_); }

bool ColumnDecoder::attributes(Value value) {
  attributes_.clear();
  return each(value, "attributes", [&](size_t /*position*/, Value item) {
    return object_text(item, "an entry of attributes", attributes_.emplace_back());
  });
}

bool ColumnDecoder::shapes(Value value) {
  shapes_.clear();
  extents_.clear();
  return each(value, "shapes", [&](size_t position, Value item) {
    return shape(item) || fail(fmt::format("entry {} of shapes: {}", position, complaint()));
  });
}

bool ColumnDecoder::shape(Value value) {
  ExtentsRow row;
  row.first = static_cast<uint32_t>(extents_.size());
  const bool read = each(value, "it", [&](size_t position, Value item) {
    int64_t extent = 0;
    if (position >= RecordLimits::kHighestRank) return fail("it has more than 64 extents");
    if (!whole(item, "an extent", extent)) return false;
    if (extent < 0) return fail(fmt::format("it has a negative extent ({})", extent));
    extents_.push_back(extent);
    ++row.rank;
    return true;
  });
  shapes_.push_back(row);
  return read;
}

bool ColumnDecoder::tensors(Value value) {
  ColumnGroup group("tensors");
  tensor_strides_.clear();
  tensor_offset_.clear();
  const bool read = each_field(value, "tensors", [&](std::string_view key, Value item) {
    if (key == "storage") return column(item, group, "storage", 0, kMostIndex, tensor_storage_);
    if (key == "dtype") return column(item, group, "dtype", 0, kMostIndex, tensor_dtype_);
    if (key == "shape") return column(item, group, "shape", 0, kMostIndex, tensor_shape_);
    if (key == "strides") return column(item, group, "strides", TensorRow::kContiguous, kMostIndex, tensor_strides_);
    if (key == "offset") return column(item, group, "offset", 0, RecordLimits::kMostElements, tensor_offset_);
    return true;
  });
  return read && complete(group, {"storage", "dtype", "shape"});
}

bool ColumnDecoder::operands(Value value, std::string_view what, OperandLists& out) {
  out.counts.clear();
  out.tensors.clear();
  out.packed = is_object(value);
  if (!out.packed) return operand_lists(value, what, out);
  return packed(value, "back", [&](Value lists) { return operand_lists(lists, what, out); }) ||
         (complaint().starts_with("ops.") ? false : fail(fmt::format("{}: {}", what, complaint())));
}

bool ColumnDecoder::operand_lists(Value value, std::string_view what, OperandLists& out) {
  return each(value, what, [&](size_t op, Value list) {
    const size_t before = out.tensors.size();
    const bool read = each(list, what, [&](size_t /*position*/, Value item) {
      return index(item, "an entry", out.tensors.emplace_back());
    });
    out.counts.push_back(static_cast<uint32_t>(out.tensors.size() - before));
    return read || fail(fmt::format("{}, op {}: {}", what, op, complaint()));
  });
}

bool ColumnDecoder::unpack_operands() {
  if (inputs_.packed != outputs_.packed) return fail("one of ops.inputs and ops.outputs is packed, the other is not");
  if (!inputs_.packed) return true;
  uint32_t named = 0;
  size_t input = 0;
  size_t output = 0;
  const auto resolve = [&](uint32_t& tensor, size_t op) {
    if (tensor > named) return fail(fmt::format("op {} goes {} tensors back, of {}", op, tensor, named));
    tensor = named - tensor;
    if (tensor == named) ++named;
    return true;
  };
  for (size_t op = 0; op < inputs_.counts.size(); ++op) {
    for (uint32_t k = 0; k < inputs_.counts[op]; ++k) {
      if (!resolve(inputs_.tensors[input++], op)) return false;
    }
    for (uint32_t k = 0; k < outputs_.counts[op]; ++k) {
      if (!resolve(outputs_.tensors[output++], op)) return false;
    }
  }
  return true;
}

bool ColumnDecoder::sequences(Value value) {
  op_sequence_.clear();
  if (is_object(value)) return packed_sequences(value) || fail("ops.sequence: " + complaint());
  return each(value, "ops.sequence", [&](size_t /*position*/, Value item) {
    int64_t number = 0;
    uint64_t large = 0;
    if (auto code = item.get_int64().get(number)) {
      if (item.get_uint64().get(large)) return fail(code, "an entry of ops.sequence", "a whole number");
      number = -1;
    }
    const bool fits = number >= 0 && number < RecordLimits::kNoSequence;
    op_sequence_.push_back(fits ? static_cast<uint32_t>(number) : RecordLimits::kNoSequence);
    return true;
  });
}

// Differences between ops that have a number; null has none.
bool ColumnDecoder::packed_sequences(Value value) {
  int64_t sum = 0;
  return packed(value, "differences", [&](Value list) {
    return each(list, "ops.sequence", [&](size_t position, Value item) {
      int64_t difference = 0;
      const bool none = is_null(item);
      if (!none && !whole(item, fmt::format("entry {}", position), difference)) return false;
      if (__builtin_add_overflow(sum, difference, &sum)) return fail("its differences add up to more than 2^63");
      const bool fits = !none && sum >= 0 && sum < RecordLimits::kNoSequence;
      op_sequence_.push_back(fits ? static_cast<uint32_t>(sum) : RecordLimits::kNoSequence);
      return true;
    });
  });
}

bool ColumnDecoder::ops(Value value) {
  has_ops_ = true;
  ColumnGroup group("ops");
  const bool read = each_field(value, "ops", [&](std::string_view key, Value item) {
    if (key == "name") return column(item, group, "name", 0, kMostIndex, op_name_);
    if (key == "phase") return text(item, "ops.phase", op_phase_) && group.add("phase", op_phase_.size());
    if (key == "module") return column(item, group, "module", -1, kMostIndex, op_module_);
    if (key == "inputs") return operands(item, "ops.inputs", inputs_) && group.add("inputs", inputs_.counts.size());
    if (key == "outputs") {
      return operands(item, "ops.outputs", outputs_) && group.add("outputs", outputs_.counts.size());
    }
    if (key == "attributes") return column(item, group, "attributes", 0, kMostIndex, op_attributes_);
    if (key == "sequence") return sequences(item) && group.add("sequence", op_sequence_.size());
    if (key == "node") return column(item, group, "node", -1, kMostIndex, op_node_);
    return true;
  });
  if (!read || !complete(group, {"name", "phase", "module", "inputs", "outputs", "attributes", "sequence", "node"})) {
    return false;
  }
  if (!unpack_operands()) return false;
  columns_->ops.assign(op_name_.size(), OpRow{});  // filled by finish()
  return true;
}

bool ColumnDecoder::storages(Value value) {
  ColumnGroup group("storages");
  std::vector<int64_t> bytes;
  std::vector<uint32_t> host;
  const bool read = each_field(value, "storages", [&](std::string_view key, Value item) {
    if (key == "bytes") return column(item, group, "bytes", 0, RecordLimits::kMostBytes, bytes);
    ColumnGroup apart("storages");
    return key != "host" || column(item, apart, "host", 0, kMostIndex, host);
  });
  if (!read || !complete(group, {"bytes"})) return false;
  columns_->storages.clear();
  columns_->storages.reserve(bytes.size());
  for (const int64_t size : bytes) columns_->storages.push_back({Bytes(size), true});
  for (const uint32_t id : host) {
    if (id >= bytes.size()) return fail(fmt::format("storages.host names storage {} of {}", id, bytes.size()));
    columns_->storages[id].on_gpu = false;
  }
  return true;
}

bool ColumnDecoder::frees(Value value) {
  ColumnGroup group("frees");
  std::vector<uint64_t> op;
  std::vector<uint64_t> storage;
  const bool read = each_field(value, "frees", [&](std::string_view key, Value item) {
    if (key == "op") return column(item, group, "op", 0, kMostIndex, op);
    return key != "storage" || column(item, group, "storage", 0, kMostIndex, storage);
  });
  if (!read || !complete(group, {"op", "storage"})) return false;
  columns_->frees.clear();
  for (size_t i = 0; i < op.size(); ++i) columns_->frees.push_back({op[i], storage[i]});
  return true;
}

bool ColumnDecoder::roots(simdjson::ondemand::object object) {
  ColumnGroup group("roots");
  std::vector<uint64_t> storage;
  std::string_view kinds;
  std::vector<std::string_view> names;
  const bool read = each_field(object, "roots", [&](std::string_view key, Value item) {
    if (key == "storage") return column(item, group, "storage", 0, kMostIndex, storage);
    if (key == "kind") return text(item, "roots.kind", kinds) && group.add("kind", kinds.size());
    return key != "name" || (texts(item, "roots.name", names) && group.add("name", names.size()));
  });
  if (!read || !complete(group, {"storage", "kind", "name"})) return false;
  columns_->roots.clear();
  for (size_t i = 0; i < storage.size(); ++i) {
    const auto root = root_of(kinds[i]);
    if (!root) return fail(fmt::format("roots.kind has '{}'; known: p, b, s, i", printable(kinds[i])));
    columns_->roots.push_back({storage[i], *root, names[i]});
  }
  return true;
}

bool ColumnDecoder::finish() {
  if (!has_ops_) return true;
  return finish_tensors() && finish_ops();
}

bool ColumnDecoder::finish_tensors() {
  std::vector<DType> known;
  for (const std::string_view name : dtypes_) {
    const auto dtype = dtype_named(name);
    if (!dtype) return fail(fmt::format("dtypes has \"{}\"; known: {}", name.substr(0, 60), known_dtypes()));
    known.push_back(*dtype);
  }
  columns_->tensors.clear();
  columns_->tensors.reserve(tensor_storage_.size());
  for (size_t i = 0; i < tensor_storage_.size(); ++i) {
    TensorRow row;
    const auto outside = [&](std::string_view what, int64_t entry, size_t size) {
      return fail(fmt::format("tensor {} names entry {} of {} {}", i, entry, size, what));
    };
    if (tensor_dtype_[i] >= known.size()) return outside("dtypes", tensor_dtype_[i], known.size());
    if (tensor_shape_[i] >= shapes_.size()) return outside("shapes", tensor_shape_[i], shapes_.size());
    row.storage = tensor_storage_[i];
    row.dtype = known[tensor_dtype_[i]];
    row.shape = tensor_shape_[i];
    if (!tensor_strides_.empty()) row.strides = tensor_strides_[i];
    if (row.strides >= static_cast<int64_t>(shapes_.size())) {
      return outside("shapes", row.strides, shapes_.size());
    }
    if (!tensor_offset_.empty()) row.offset = tensor_offset_[i];
    columns_->tensors.push_back(row);
  }
  columns_->shapes.swap(shapes_);
  columns_->extents.swap(extents_);
  return true;
}

bool ColumnDecoder::finish_ops() {
  columns_->operands.clear();
  size_t input = 0;
  size_t output = 0;
  for (size_t i = 0; i < columns_->ops.size(); ++i) {
    OpRow& row = columns_->ops[i];
    row.name = op_name_[i];
    row.module = op_module_[i];
    row.sequence = op_sequence_[i];
    row.first_operand = static_cast<uint32_t>(columns_->operands.size());
    row.input_count = inputs_.counts[i];
    row.output_count = outputs_.counts[i];
    for (uint32_t k = 0; k < row.input_count; ++k) columns_->operands.push_back(inputs_.tensors[input++]);
    for (uint32_t k = 0; k < row.output_count; ++k) columns_->operands.push_back(outputs_.tensors[output++]);
    for (const uint32_t tensor : std::span(columns_->operands).subspan(row.first_operand)) {
      if (tensor >= columns_->tensors.size()) {
        return fail(fmt::format("op {} names tensor {} of {}", i, tensor, columns_->tensors.size()));
      }
    }
    const char letter = op_phase_[i];
    if (letter != 'f' && letter != 'b' && letter != 'u') {
      return fail(fmt::format("op {}: its phase is \"{}\"; known: f, b, u", i, printable(letter)));
    }
    row.phase = letter == 'f' ? Phase::forward : letter == 'b' ? Phase::backward : Phase::update;
    if (op_attributes_[i] >= attributes_.size()) {
      return fail(fmt::format("op {} names entry {} of {} attributes", i, op_attributes_[i], attributes_.size()));
    }
    row.attributes = attributes_[op_attributes_[i]];
    if (op_node_[i] >= static_cast<int64_t>(nodes_.size())) {
      return fail(fmt::format("op {} names entry {} of {} nodes", i, op_node_[i], nodes_.size()));
    }
    if (op_node_[i] >= 0) row.autograd_node = nodes_[static_cast<size_t>(op_node_[i])];
  }
  columns_->attributes.swap(attributes_);
  return true;
}

}  // namespace forerun
