#include "scale/host_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/json_file.h"
#include "scale/least_squares.h"

namespace forerun::scale {
namespace {

constexpr double kVirtualLinkBits = 12e9;  // links up to this are carried at their rate

struct RateField {
  const char* name;
  double HostRates::*value;
};
constexpr RateField kRateFields[] = {{"copy_bytes_per_second", &HostRates::copy_bytes_per_second},
                                     {"server_bytes_per_second", &HostRates::server_bytes_per_second},
                                     {"update_bytes_per_second", &HostRates::update_bytes_per_second},
                                     {"link_share", &HostRates::link_share},
                                     {"most_bits_per_second", &HostRates::most_bits_per_second},
                                     {"compute_factor", &HostRates::compute_factor},
                                     {"gpu_factor", &HostRates::gpu_factor},
                                     {"memory_factor", &HostRates::memory_factor}};

// Two unknowns of time = a x + b y, by relative least squares; nothing below zero.
class TwoTerms {
 public:
  void add(double x, double y, double time) {
    if (!(time > 0)) return;
    const std::array<double, 2> row = {x / time, y / time};
    for (size_t i = 0; i < 2; ++i) {
      right_[i] += row[i];
      for (size_t j = 0; j < 2; ++j) normal_[2 * i + j] += row[i] * row[j];
    }
    ++count_;
  }
  // Empty where the rows do not tell; a term that comes out below zero is left out of the other's fit.
  [[nodiscard]] std::vector<double> solution() const {
    if (count_ < 3) return {};
    std::vector<double> both = solve_symmetric({normal_.begin(), normal_.end()}, {right_.begin(), right_.end()});
    if (both.empty()) both = {-1, -1};
    if (both[0] < 0) both = {0, right_[1] / normal_[3]};
    if (both[1] < 0) both = {right_[0] / normal_[0], 0};
    return both;
  }

 private:
  std::array<double, 4> normal_ = {};
  std::array<double, 2> right_ = {};
  int64_t count_ = 0;
};

double median_or(std::vector<double> values, double otherwise) {
  if (values.size() < 3) return otherwise;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Bits that cross the busiest link of an iteration, one way after the other.
double crossing_bits(const MeasuredPhases& p) {
  const auto n = static_cast<double>(p.workers);
  if (p.servers == 0) return 8 * 2 * (n - 1) / n * p.bytes;
  return 8 * 2 * std::max(1.0, n / static_cast<double>(p.servers)) * p.bytes;
}

void fit_copies(std::span<const MeasuredPhases> phases, HostRates& rates) {
  TwoTerms copies;
  for (const MeasuredPhases& p : phases) copies.add(1, p.bytes, p.to_host * 1e-3);
  const std::vector<double> found = copies.solution();
  if (found.empty() || found[1] <= 0) return;
  rates.copy_bytes_per_second = 1 / found[1];
  rates.message = Nanoseconds(std::llround(found[0] * 1e9));
}

void fit_servers(std::span<const MeasuredPhases> phases, HostRates& rates) {
  TwoTerms updates;
  for (const MeasuredPhases& p : phases) {
    if (p.servers == 0) continue;
    const double slice = p.bytes / static_cast<double>(p.servers);
    const auto n = static_cast<double>(p.workers);
    updates.add(n * slice, (p.sync ? 1 : n) * slice, p.server_update * 1e-3);
  }
  const std::vector<double> found = updates.solution();
  if (found.empty()) return;
  constexpr double kInstant = 1e15;
  rates.server_bytes_per_second = found[0] > 0 ? 1 / found[0] : kInstant;
  rates.update_bytes_per_second = found[1] > 0 ? 1 / found[1] : kInstant;
}

}  // namespace

Result<HostRates> read_host_rates(const std::filesystem::path& path) {
  auto file = JsonObject::read(path);
  if (!file) return file.error();
  HostRates rates;
  if (file->text("format") != "host_rates/1")
    file->fail("format", "is not \"host_rates/1\"", "use data/scale/testbed.json");
  for (const RateField& field : kRateFields) rates.*field.value = file->number(field.name);
  rates.message = nanoseconds_from_us(file->number("message_us", Sign::not_negative));
  if (const Status status = file->status(); !status) return status.error();
  return rates;
}

std::string to_json(const HostRates& rates, const std::string& source) {
  nlohmann::ordered_json json = {{"format", "host_rates/1"}, {"source", source}};
  for (const RateField& field : kRateFields) json[field.name] = std::stod(fmt::format("{:.5g}", rates.*field.value));
  json["message_us"] = std::round(microseconds(rates.message));
  return json.dump(1) + "\n";
}

HostRates fit_host_rates(std::span<const MeasuredPhases> phases, const HostRates& first) {
  HostRates rates = first;
  fit_copies(phases, rates);
  fit_servers(phases, rates);
  std::vector<double> shares, carried, computed, gpu, memory;
  for (const MeasuredPhases& p : phases) {
    if (p.sync && p.exchange > 0) {
      const double seconds = 1e-3 * (p.exchange - (p.servers > 0 ? std::max(p.server_update, 0.0) : 0));
      if (seconds > 0) {
        const double bits = crossing_bits(p) / seconds;
        if (p.bits_per_second <= kVirtualLinkBits) {
          shares.push_back(std::min(bits / p.bits_per_second, 1.0));
        } else {
          carried.push_back(bits);
        }
      }
    }
    if (p.compute > 0 && p.simulated_compute > 0) computed.push_back(p.compute / p.simulated_compute);
    if (p.gpu > 0 && p.simulated_gpu > 0) gpu.push_back(p.gpu / p.simulated_gpu);
    if (p.memory > 0 && p.simulated_memory > 0) memory.push_back(p.memory / p.simulated_memory);
  }
  rates.link_share = median_or(shares, first.link_share);
  rates.most_bits_per_second = median_or(carried, first.most_bits_per_second);
  rates.compute_factor = median_or(computed, first.compute_factor);
  rates.gpu_factor = median_or(gpu, first.gpu_factor);
  rates.memory_factor = median_or(memory, first.memory_factor);
  return rates;
}

}  // namespace forerun::scale
