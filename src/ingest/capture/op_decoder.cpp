#include "ingest/capture/op_decoder.h"

namespace forerun {
namespace {

constexpr size_t kOpEntries = 8;
constexpr size_t kOperandEntries = 3;

}  // namespace

bool OpDecoder::decode(Value ops) {
  columns_.ops.clear();
  columns_.operands.clear();
  columns_.tensors.clear();
  columns_.shapes.clear();
  columns_.extents.clear();
  return each(ops, "ops", [this](size_t index, Value value) {
    op_ = index;
    name_.reset();
    side_ = nullptr;
    return op(value) || fail(place(complaint()));
  });
}

std::string OpDecoder::place(std::string_view complaint) const {
  std::string text = fmt::format("op {}", op_);
  if (name_ && *name_ < columns_.op_names.size()) text += fmt::format(" ({})", columns_.op_names[*name_]);
  text += ": ";
  if (side_ != nullptr) text += fmt::format("{} {}: ", side_, position_);
  return text += complaint;
}

bool OpDecoder::op(Value value) {
  OpRow row;
  row.first_operand = static_cast<uint32_t>(columns_.operands.size());
  size_t entries = 0;
  const bool read = each(value, "it", [&](size_t position, Value item) {
    ++entries;
    return entry(position, item, row);
  });
  if (!read) return false;
  if (entries < kOpEntries) return fail(fmt::format("has {} entries instead of {}", entries, kOpEntries));
  columns_.ops.push_back(row);
  return true;
}

bool OpDecoder::entry(size_t position, Value value, OpRow& row) {
  switch (position) {
    case 0:
      if (!index(value, "its name", row.name)) return false;
      name_ = row.name;
      return true;
    case 1: return phase(value, row);
    case 2: return whole(value, "its module", row.module);
    case 3: return operands(value, "input", row.input_count);
    case 4: return operands(value, "output", row.output_count);
    case 5: return object_text(value, "its attributes", row.attributes);
    case 6: return sequence(value, row);
    case 7: return text(value, "its autograd node", row.autograd_node);
    default: return true;
  }
}

bool OpDecoder::phase(Value value, OpRow& row) {
  std::string_view name;
  if (!text(value, "its phase", name)) return false;
  if (name == "f") {
    row.phase = Phase::forward;
  } else if (name == "b") {
    row.phase = Phase::backward;
  } else if (name == "u") {
    row.phase = Phase::update;
  } else {
    return fail(fmt::format("its phase is \"{}\"; known: f, b, u", name.substr(0, 60)));
  }
  return true;
}

bool OpDecoder::sequence(Value value, OpRow& row) {
  uint64_t number = 0;
  if (!whole(value, "its sequence number", number)) return false;
  row.sequence = number > RecordLimits::kNoSequence ? RecordLimits::kNoSequence : static_cast<uint32_t>(number);
  return true;
}

bool OpDecoder::operands(Value value, const char* side, uint32_t& count) {
  count = 0;
  const bool read =
      each(value, side == std::string_view("input") ? "inputs" : "outputs", [&](size_t position, Value item) {
        side_ = side;
        position_ = position;
        ++count;
        return operand(item);
      });
  if (read) side_ = nullptr;
  return read;
}

bool OpDecoder::operand(Value value) {
  TensorRow row;
  size_t entries = 0;
  const bool read = each(value, "it", [&](size_t position, Value item) {
    ++entries;
    if (position == 0) return index(item, "its storage", row.storage);
    if (position == 2) return shape(item, row);
    if (position > 2) return true;
    std::string_view name;
    if (!text(item, "its dtype", name)) return false;
    const auto dtype = dtype_named(name);
    return named("its dtype", name, dtype, dtype ? "" : known_dtypes(), row.dtype);
  });
  if (!read) return false;
  if (entries < kOperandEntries) return fail("is not [storage, dtype, shape]");
  columns_.operands.push_back(static_cast<uint32_t>(columns_.tensors.size()));
  columns_.tensors.push_back(row);
  return true;
}

bool OpDecoder::shape(Value value, TensorRow& row) {
  const auto first = static_cast<uint32_t>(columns_.extents.size());
  int64_t elements = 1;  // of the extents above 0
  const bool read = each(value, "its shape", [&](size_t position, Value item) {
    int64_t extent = 0;
    if (position >= RecordLimits::kHighestRank) return fail("its shape has more than 64 extents");
    if (!whole(item, "an extent of its shape", extent)) return false;
    if (extent < 0) return fail(fmt::format("its shape has a negative extent ({})", extent));
    if (extent > 0 && elements > RecordLimits::kMostElements / extent) {
      return fail("its shape has more than 2^46 elements");
    }
    if (extent > 0) elements *= extent;
    columns_.extents.push_back(extent);
    return true;
  });
  row.shape = static_cast<uint32_t>(columns_.shapes.size());
  columns_.shapes.push_back({first, static_cast<uint32_t>(columns_.extents.size()) - first});
  return read;
}

}  // namespace forerun
