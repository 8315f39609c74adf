#include "cost/hybrid/hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "base/byte_source.h"
#include "base/line_writer.h"
#include "cost/analytic/analytic.h"

namespace forerun::hybrid {
namespace {

constexpr std::string_view kMagic = "forerun hybrid/1\n";
constexpr double kLongestUs = 9e9;

void put_text(std::string& bytes, std::string_view text) {
  bytes.push_back(static_cast<char>(text.size()));
  bytes += text;
}

bool take_text(std::string_view& bytes, std::string& text) {
  if (bytes.empty()) return false;
  const auto length = static_cast<uint8_t>(bytes[0]);
  if (bytes.size() < 1U + length) return false;
  text = bytes.substr(1, length);
  bytes.remove_prefix(1U + length);
  return true;
}

void put_number(std::string& bytes, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

bool take_number(std::string_view& bytes, uint32_t& value) {
  if (bytes.size() < 4) return false;
  value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  bytes.remove_prefix(4);
  return true;
}

bool take_ranges(std::string_view& bytes, std::array<Range, kColumns>& seen) {
  for (Range& range : seen) {
    uint32_t low = 0;
    uint32_t high = 0;
    if (!take_number(bytes, low) || !take_number(bytes, high)) return false;
    range = {std::bit_cast<float>(low), std::bit_cast<float>(high)};
  }
  return true;
}

Error broken(std::string what) { return {std::move(what), "", "train it again with `forerun train hybrid`"}; }

// A tenth of the range beyond what was seen is still around it.
bool within(const Piece& piece, const std::array<Range, kColumns>& seen) {
  for (size_t column = 1; column < kColumns; ++column) {
    const float slack = 0.1F * (seen[column].high - seen[column].low);
    const float value = piece.columns[column];
    if (value < seen[column].low - slack || value > seen[column].high + slack) return false;
  }
  return true;
}

// Remembers what pieces cost: the layers of a model repeat, and asking the trees takes most of the time.
class KnownPieces {
 public:
  explicit KnownPieces(const Corrector& corrector) : corrector_(corrector) {}

  const PieceCost& cost(const Piece& piece) {
    key_.assign(reinterpret_cast<const char*>(piece.columns.data()), sizeof piece.columns);
    key_.push_back(static_cast<char>(piece.model));
    key_ += piece.op;
    const auto [found, fresh] = known_.try_emplace(key_);
    if (fresh) found->second = corrector_.cost(piece);
    return found->second;
  }

 private:
  const Corrector& corrector_;
  std::string key_;
  std::unordered_map<std::string, PieceCost> known_;
};

Bound bound_of(const std::vector<Piece>& pieces, double us) {
  double compute = 0;
  double memory = 0;
  for (const Piece& piece : pieces) {
    compute += piece.compute_us;
    memory += piece.memory_us;
  }
  if (std::max(compute, memory) < 0.15 * us) return Bound::latency;
  return compute > memory ? Bound::compute : Bound::memory;
}

// The cost of a piece on another GPU, from that on the measured one.
PieceCost carried(const PieceCost& cost, const Piece& measured, const Piece& piece, Unit unit, const OtherGpu& other,
                  const Device& there) {
  const auto kind = carried_as(piece.model, unit, other.measured, there);
  PieceCost result = cost;
  result.us = carried_us(piece.analytic_us, cost.us / measured.analytic_us, kind, other.scale);
  result.overlapped_us = cost.us > 0 ? cost.overlapped_us * result.us / cost.us : 0;
  return result;
}

OpCost sum_of(const std::vector<Piece>& pieces, const std::vector<PieceCost>& parts) {
  OpCost total;
  if (pieces.empty()) return total;
  double us = 0;
  double overlapped = 0;
  double kernels = 0;
  total.measured = true;
  for (const PieceCost& cost : parts) {
    us += cost.us;
    overlapped += cost.overlapped_us;
    kernels += cost.kernels;
    total.measured = total.measured && cost.familiar;
  }
  total.gpu = Nanoseconds(static_cast<int64_t>(std::llround(std::min(us, kLongestUs) * 1e3)));
  total.overlapped = std::min(total.gpu, Nanoseconds(static_cast<int64_t>(overlapped * 1e3)));
  total.kernels = static_cast<int>(std::clamp(std::round(kernels), 1.0, 1e9));
  total.bound = bound_of(pieces, us);
  return total;
}

}  // namespace

int Knowledge::number_of(std::string_view op) const {
  const auto found = std::lower_bound(ops.begin(), ops.end(), op);
  return found != ops.end() && *found == op ? static_cast<int>(found - ops.begin()) : -1;
}

PieceCost Corrector::cost(Piece piece) const {
  PieceCost cost{.us = piece.analytic_us};
  const std::optional<Knowledge>& known = models[static_cast<size_t>(piece.model)];
  const int number = known ? known->number_of(piece.op) : -1;
  if (number < 0) return cost;
  piece.columns[0] = static_cast<float>(number);
  cost.us = piece.analytic_us * std::exp(static_cast<double>(known->time.predict(piece.columns)));
  cost.kernels = std::exp2(static_cast<double>(known->kernels.predict(piece.columns)));
  const double span = std::min(static_cast<double>(known->span.predict(piece.columns)), 0.0);
  cost.overlapped_us = cost.us * -std::expm1(span);
  cost.familiar = within(piece, known->seen);
  return cost;
}

std::vector<OpCost> hybrid_costs(const Graph& graph, const Device& device, const TrainingSetup& setup,
                                 const AnalyticConstants& constants, const Corrector& corrector,
                                 const std::optional<OtherGpu>& other) {
  std::vector<OpCost> costs;
  costs.reserve(graph.op_count());
  LayoutTracker layouts(graph, setup.channels_last);
  KnownPieces known(corrector);
  const Device there = other ? other->scale.sustaining(device) : device;
  for (const Op& op : graph.ops()) {
    const OpWork work = work_of(graph, op);
    const std::vector<Piece> pieces = pieces_of(graph, op, work, layouts, there, setup, constants);
    std::vector<PieceCost> parts;
    if (other) {
      const Unit unit = product_unit(work, setup.precision);
      const auto measured = pieces_of(graph, op, work, layouts, other->measured, setup, constants);
      for (size_t i = 0; i < pieces.size(); ++i) {
        parts.push_back(carried(known.cost(measured[i]), measured[i], pieces[i], unit, *other, there));
      }
    } else {
      for (const Piece& piece : pieces) parts.push_back(known.cost(piece));
    }
    layouts.pass(op);
    costs.push_back(sum_of(pieces, parts));
  }
  return costs;
}

std::string to_bytes(const Corrector& corrector) {
  std::string bytes(kMagic);
  put_text(bytes, corrector.gpu);
  for (const std::optional<Knowledge>& known : corrector.models) {
    put_number(bytes, known ? static_cast<uint32_t>(known->ops.size()) : 0);
    if (!known) continue;
    for (const std::string& op : known->ops) put_text(bytes, op);
    for (const Range& range : known->seen) {
      put_number(bytes, std::bit_cast<uint32_t>(range.low));
      put_number(bytes, std::bit_cast<uint32_t>(range.high));
    }
    known->time.write(bytes);
    known->kernels.write(bytes);
    known->span.write(bytes);
  }
  return bytes;
}

Result<Corrector> from_bytes(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return broken("this is no hybrid cost model");
  bytes.remove_prefix(kMagic.size());
  Corrector corrector;
  if (!take_text(bytes, corrector.gpu)) return broken("the hybrid cost model ends too early");
  for (size_t model = 0; model < kModelCount; ++model) {
    uint32_t ops = 0;
    if (!take_number(bytes, ops) || ops > bytes.size()) return broken("the hybrid cost model ends too early");
    if (ops == 0) continue;
    Knowledge known;
    known.ops.resize(ops);
    for (std::string& op : known.ops) {
      if (!take_text(bytes, op)) return broken("the hybrid cost model ends too early");
    }
    if (!take_ranges(bytes, known.seen)) return broken("the hybrid cost model ends too early");
    for (Forest* forest : {&known.time, &known.kernels, &known.span}) {
      Result<Forest> read = Forest::read(bytes);
      if (!read) return read.error();
      if (read->columns() > kColumns) return broken("the hybrid cost model asks for columns that ops do not have");
      *forest = std::move(*read);
    }
    corrector.models[model] = std::move(known);
  }
  if (!bytes.empty()) return broken("the hybrid cost model goes on behind its end");
  return corrector;
}

Result<Corrector> load_corrector(const std::filesystem::path& file) {
  Result<std::unique_ptr<ByteSource>> source = ByteSource::open(file.string());
  if (!source) return source.error();
  std::string bytes;
  std::array<char, 1 << 16> piece;
  while (true) {
    const Result<size_t> count = (*source)->read(piece.data(), piece.size());
    if (!count) return count.error().within(file.string());
    if (*count == 0) break;
    bytes.append(piece.data(), *count);
  }
  if (!bytes.empty()) bytes.pop_back();  // the end of the line
  Result<Corrector> corrector = from_bytes(bytes);
  if (!corrector) return corrector.error().within(file.string());
  return corrector;
}

Status save_corrector(const Corrector& corrector, const std::filesystem::path& file) {
  Result<LineWriter> writer = LineWriter::create(file.string(), {.overwrite = true});
  if (!writer) return writer.error();
  if (Status written = writer->write(to_bytes(corrector)); !written.ok()) return written;
  return writer->finish();
}

}  // namespace forerun::hybrid
