// The binary form of a DataSet. All numbers are little-endian; counts, indices and differences are LEB128 varints.
//
//   "FRDS" version(1 byte)
//   source; names: count, texts; rows: count, then each row: name, phase, dtype, class, on_gpu as bytes, the number of
//   amounts and of hyper-parameters up to the last that is not 0, and those as float32
//   examples: count, then each: id, group, split, configuration, kept_back, batch, size, precision, optimizer, channels_last, device, parameters,
//   parameter_tensors, host_slowness, ops (as indices), edges (target as difference to the one before, source as distance to the
//   target, bytes), targets
//   "END."
//
// A text is its length and its bytes. Reading checks every index and count against what is there, so a broken file is an
// Error and never more memory than the file could describe.
#include <bit>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/check.h"
#include "base/output_file.h"
#include "lab/dataset/dataset.h"

namespace forerun::learn {
namespace {

constexpr std::string_view kMagic = "FRDS";
constexpr std::string_view kEnd = "END.";
constexpr uint8_t kVersion = 3;

class Writer {
 public:
  void byte(uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void varint(uint64_t value) {
    while (value >= 0x80) {
      byte(static_cast<uint8_t>(value | 0x80));
      value >>= 7;
    }
    byte(static_cast<uint8_t>(value));
  }
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  void text(std::string_view text) {
    varint(text.size());
    raw(text);
  }
  void f32(float value) { little(std::bit_cast<uint32_t>(value), 4); }
  void f64(double value) { little(std::bit_cast<uint64_t>(value), 8); }
  void floats(std::span<const float> values) {
    varint(values.size());
    for (const float value : values) f32(value);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void little(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  std::string bytes_;
};

// Reads what Writer writes. The first fault is kept, and what is read after it is 0 or empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  uint8_t byte() {
    if (at_ >= bytes_.size()) {
      fail("it ends too early");
      return 0;
    }
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  // At most `most`: more is a fault.
  uint64_t varint(uint64_t most) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      value |= uint64_t{next & 0x7FU} << shift;
      if (next < 0x80) break;
    }
    if (value > most) {
      fail("a number is out of range");
      return 0;
    }
    return value;
  }
  // How many things follow that take at least `each` bytes.
  size_t count(size_t each) { return static_cast<size_t>(varint((bytes_.size() - at_) / each)); }
  std::string_view raw(size_t size) {
    if (size > bytes_.size() - at_) {
      fail("it ends too early");
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::string text() { return std::string(raw(count(1))); }
  float f32() { return std::bit_cast<float>(static_cast<uint32_t>(little(4))); }
  double f64() { return std::bit_cast<double>(little(8)); }
  std::vector<float> floats() {
    std::vector<float> values(count(4));
    for (float& value : values) value = f32();
    return values;
  }
  template <class Enum>
  Enum enumerator(Enum last) {
    const uint8_t value = byte();
    if (value > static_cast<uint8_t>(last)) fail("a kind is unknown");
    return fault_.empty() ? static_cast<Enum>(value) : Enum{};
  }
  void fail(const char* what) {
    if (fault_.empty()) fault_ = what;
    at_ = bytes_.size();
  }
  [[nodiscard]] bool ok() const { return fault_.empty(); }
  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

 private:
  uint64_t little(int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; ++i) value |= uint64_t{byte()} << (8 * i);
    return value;
  }
  std::string_view bytes_;
  size_t at_ = 0;
  std::string fault_;
};

template <size_t N>
void write_trimmed(Writer& out, const std::array<float, N>& values) {
  size_t used = N;
  while (used > 0 && values[used - 1] == 0) --used;
  out.floats(std::span(values).first(used));
}

template <size_t N>
void read_trimmed(Reader& in, std::array<float, N>& values) {
  const auto used = static_cast<size_t>(in.varint(N));
  for (size_t i = 0; i < used; ++i) values[i] = in.f32();
}

void write(Writer& out, const OpRow& row) {
  out.varint(row.name.value);
  out.byte(static_cast<uint8_t>(row.phase));
  out.byte(static_cast<uint8_t>(row.dtype));
  out.byte(static_cast<uint8_t>(row.cls));
  out.byte(row.on_gpu ? 1 : 0);
  write_trimmed(out, row.amounts);
  write_trimmed(out, row.hyper);
}

OpRow read_row(Reader& in, size_t names) {
  OpRow row;
  const uint64_t name = in.varint(names);
  if (name >= names) in.fail("a row's name is not there");
  row.name = NameId(static_cast<size_t>(name));
  row.phase = in.enumerator(Phase::update);
  row.dtype = in.enumerator(DType::complex128);
  row.cls = in.enumerator(OpClass::opaque);
  row.on_gpu = in.byte() != 0;
  read_trimmed(in, row.amounts);
  read_trimmed(in, row.hyper);
  return row;
}

void write(Writer& out, const Targets& targets) {
  out.f64(targets.iteration_ms);
  out.f64(targets.gpu_busy_ms);
  out.f64(targets.peak_bytes);
  out.f64(targets.reserved_bytes);
  out.floats(targets.op_us);
  out.floats(targets.gap_us);
  out.floats(targets.host_us);
}

Targets read_targets(Reader& in, size_t ops) {
  Targets targets;
  targets.iteration_ms = in.f64();
  targets.gpu_busy_ms = in.f64();
  targets.peak_bytes = in.f64();
  targets.reserved_bytes = in.f64();
  targets.op_us = in.floats();
  targets.gap_us = in.floats();
  targets.host_us = in.floats();
  const auto fits = [&](const std::vector<float>& values) { return values.empty() || values.size() == ops; };
  if (!fits(targets.op_us) || !fits(targets.gap_us) || !fits(targets.host_us))
    in.fail("times by op are not as many as the ops");
  return targets;
}

void write_edges(Writer& out, const std::vector<DataEdge>& edges) {
  out.varint(edges.size());
  uint32_t before = 0;
  for (const DataEdge& edge : edges) {
    CHECK(edge.target >= before && edge.source < edge.target, "edges stand by target and run forward");
    out.varint(edge.target - before);
    out.varint(edge.target - edge.source);
    out.f32(edge.bytes);
    before = edge.target;
  }
}

std::vector<DataEdge> read_edges(Reader& in, size_t ops) {
  std::vector<DataEdge> edges(in.count(6));
  uint32_t before = 0;
  for (DataEdge& edge : edges) {
    edge.target = before + static_cast<uint32_t>(in.varint(ops));
    const auto distance = static_cast<uint32_t>(in.varint(edge.target));
    edge.bytes = in.f32();
    if (in.ok() && (edge.target >= ops || distance == 0)) in.fail("an edge leads nowhere");
    if (!in.ok()) break;
    edge.source = edge.target - distance;
    before = edge.target;
  }
  return edges;
}

void write(Writer& out, const Example& example) {
  out.text(example.id);
  out.text(example.group);
  out.byte(static_cast<uint8_t>(example.split));
  out.text(example.configuration);
  out.byte(example.kept_back ? 1 : 0);
  out.f64(example.batch);
  out.f64(example.size);
  out.byte(static_cast<uint8_t>(example.precision));
  out.byte(static_cast<uint8_t>(example.optimizer.kind));
  out.byte(static_cast<uint8_t>(example.optimizer.impl));
  out.f64(example.optimizer.learning_rate);
  out.f64(example.optimizer.momentum);
  out.f64(example.optimizer.weight_decay);
  out.byte(example.channels_last ? 1 : 0);
  out.text(example.device);
  out.f64(example.parameters);
  out.f64(example.parameter_tensors);
  out.f64(example.host_slowness);
  out.varint(example.ops.size());
  for (const uint32_t row : example.ops) out.varint(row);
  write_edges(out, example.edges);
  write(out, example.targets);
}

Example read_example(Reader& in, size_t rows) {
  Example example;
  example.id = in.text();
  example.group = in.text();
  example.split = in.enumerator(Split::ood);
  example.configuration = in.text();
  example.kept_back = in.byte() != 0;
  example.batch = in.f64();
  example.size = in.f64();
  example.precision = in.enumerator(Precision::fp16);
  example.optimizer.kind = in.enumerator(OptimizerKind::other);
  example.optimizer.impl = in.enumerator(OptimizerImpl::fused);
  example.optimizer.learning_rate = in.f64();
  example.optimizer.momentum = in.f64();
  example.optimizer.weight_decay = in.f64();
  example.channels_last = in.byte() != 0;
  example.device = in.text();
  example.parameters = in.f64();
  example.parameter_tensors = in.f64();
  example.host_slowness = in.f64();
  example.ops.resize(in.count(1));
  for (uint32_t& row : example.ops) {
    row = static_cast<uint32_t>(in.varint(rows));
    if (in.ok() && row >= rows) in.fail("an op's row is not there");
  }
  example.edges = read_edges(in, example.ops.size());
  example.targets = read_targets(in, example.ops.size());
  return example;
}

Error broken(const std::string& path, const std::string& what) {
  return {"not a data set that can be read: " + what, path, "write it again with `forerun train ... --write-cache`"};
}

}  // namespace

Status DataSet::save(const std::string& path) const { return write_whole_file(path, to_bytes()); }

std::string DataSet::to_bytes() const {
  CHECK(!division.random, "a file holds the division by family");
  Writer out;
  out.raw(kMagic);
  out.byte(kVersion);
  out.text(source);
  out.varint(names_.size());
  for (size_t i = 0; i < names_.size(); ++i) out.text(names_[NameId(i)]);
  out.varint(rows_.size());
  for (const OpRow& row : rows_) write(out, row);
  out.varint(examples_.size());
  for (const Example& example : examples_) write(out, example);
  out.raw(kEnd);
  return out.bytes();
}

Result<DataSet> DataSet::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) return Error{"cannot be read", path, "check the name"};
  std::string bytes(static_cast<size_t>(size), '\0');
  file.seekg(0);
  if (!file.read(bytes.data(), size)) return Error{"cannot be read", path, "check the name"};
  return from_bytes(bytes, path);
}

Result<DataSet> DataSet::load(const std::vector<std::string>& paths) {
  CHECK(!paths.empty(), "a file to load");
  auto data = load(paths.front());
  for (size_t i = 1; data && i < paths.size(); ++i) {
    const auto more = load(paths[i]);
    if (!more) return more.error();
    data->append(*more);
    data->source += "; " + more->source;
  }
  return data;
}

Result<DataSet> DataSet::from_bytes(std::string_view bytes, const std::string& path) {
  Reader in(bytes);
  if (in.raw(kMagic.size()) != kMagic) return broken(path, "it does not start as one");
  if (const uint8_t version = in.byte(); version != kVersion) {
    return broken(path, "its version is " + std::to_string(version) + ", not " + std::to_string(kVersion));
  }
  DataSet data;
  data.source = in.text();
  const size_t names = in.count(1);
  for (size_t i = 0; i < names && in.ok(); ++i) data.names_.intern(in.text());
  if (in.ok() && data.names_.size() != names) in.fail("a name stands twice");
  const size_t rows = in.count(7);
  data.rows_.reserve(rows);
  data.index_.reserve(rows);
  for (size_t i = 0; i < rows && in.ok(); ++i) {
    const OpRow row = read_row(in, names);
    if (in.ok()) data.intern(row);
  }
  if (in.ok() && data.rows_.size() != rows) in.fail("a row stands twice");
  const size_t examples = in.count(8);
  for (size_t i = 0; i < examples && in.ok(); ++i) {
    Example example = read_example(in, rows);
    if (in.ok()) data.add(std::move(example));
  }
  if (in.raw(kEnd.size()) != kEnd || !in.at_end()) in.fail("its end is not where it should be");
  if (!in.ok()) return broken(path, in.fault());
  return data;
}

}  // namespace forerun::learn
