#include "testbed/host_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "base/json_file.h"
#include "base/statistics.h"

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
// Those that a file may leave out, and that may be zero.
constexpr RateField kFurtherFields[] = {{"start_us", &HostRates::start_us},
                                        {"copy_tensor_us", &HostRates::copy_tensor_us},
                                        {"compute_extra_us", &HostRates::compute_extra_us},
                                        {"jitter", &HostRates::jitter},
                                        {"sharing_factor", &HostRates::sharing_factor},
                                        {"sharing_power", &HostRates::sharing_power},
                                        {"linger", &HostRates::linger},
                                        {"duplex_share", &HostRates::duplex_share},
                                        {"copy_use", &HostRates::copy_use},
                                        {"async_passes", &HostRates::async_passes}};

// time = sum of coefficient x term, by relative least squares with no coefficient below zero: one at a time, in turns.
template <size_t N>
class PositiveFit {
 public:
  void add(const std::array<double, N>& terms, double time, double weight = 1) {
    if (!(time > 0)) return;
    for (size_t i = 0; i < N; ++i) {
      right_[i] += weight * terms[i] / time;
      for (size_t j = 0; j < N; ++j) normal_[i][j] += weight * terms[i] / time * terms[j] / time;
    }
    ++count_;
  }
  [[nodiscard]] bool tells() const { return count_ >= N + 1; }
  [[nodiscard]] std::array<double, N> solution() const {
    std::array<double, N> found = {};
    constexpr int kTurns = 5'000;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t i = 0; i < N; ++i) {
        if (!(normal_[i][i] > 0)) continue;
        double rest = right_[i];
        for (size_t j = 0; j < N; ++j) rest -= j == i ? 0 : normal_[i][j] * found[j];
        found[i] = std::max(0.0, rest / normal_[i][i]);
      }
    }
    return found;
  }

 private:
  std::array<std::array<double, N>, N> normal_ = {};
  std::array<double, N> right_ = {};
  size_t count_ = 0;
};

double median_or(std::vector<double> values, double otherwise) {
  return values.size() < 3 ? otherwise : upper_median(std::move(values));
}

// Bits that cross the busiest link of an iteration, one way after the other.
double crossing_bits(const MeasuredPhases& p) {
  const auto n = static_cast<double>(p.workers);
  if (p.servers == 0) return 8 * 2 * (n - 1) / n * p.bytes;
  return 8 * 2 * std::max(1.0, n / static_cast<double>(p.servers)) * p.bytes;
}

constexpr double kInstant = 1e15;
double rate_of(double seconds_per_byte) { return seconds_per_byte > 0 ? 1 / seconds_per_byte : kInstant; }

void fit_copies(std::span<const MeasuredPhases> phases, HostRates& rates) {
  PositiveFit<3> copies;
  for (const MeasuredPhases& p : phases) {
    copies.add({1, p.tensors, p.bytes}, p.to_host * 1e-3);
    if (p.servers > 0) copies.add({1, p.tensors, p.bytes}, p.to_device * 1e-3);
  }
  if (!copies.tells()) return;
  const std::array<double, 3> found = copies.solution();
  rates.message = Nanoseconds(std::llround(found[0] * 1e9));
  rates.copy_tensor_us = found[1] * 1e6;
  rates.copy_bytes_per_second = rate_of(found[2]);
}

void fit_servers(std::span<const MeasuredPhases> phases, HostRates& rates) {
  PositiveFit<7> updates;  // adding up, a plain step, what other optimizers' steps take more, an asynchronous answer
  for (const MeasuredPhases& p : phases) {
    if (p.servers == 0) continue;
    const double slice = p.bytes / static_cast<double>(p.servers);
    const auto n = static_cast<double>(p.workers);
    const double steps = p.sync ? 1 : n;
    std::array<double, 7> terms = {n * slice, steps * slice};
    if (p.optimizer != ServerOptimizer::sgd) terms[1 + static_cast<size_t>(p.optimizer)] = steps * slice;
    if (!p.sync) terms[6] = n * slice;
    updates.add(terms, p.server_update * 1e-3);
  }
  if (!updates.tells()) return;
  const std::array<double, 7> found = updates.solution();
  rates.server_bytes_per_second = rate_of(found[0]);
  rates.update_bytes_per_second = rate_of(found[1]);
  for (size_t i = 1; i < 5; ++i) rates.optimizer_passes[i] = found[1 + i] * rates.server_bytes_per_second;
  rates.async_passes = found[6] * rates.server_bytes_per_second;
}

// Each round weighs the windows by how far the one before was off, which comes to the least sum of errors.
void fit_traffic(std::span<const MeasuredPhases> phases, HostRates& rates) {
  constexpr double kFull = 99.9;  // levels that the counters cut off tell too little
  constexpr double kLeastError = 0.03;
  constexpr int kRounds = 15;
  Traffic found = {};
  for (int round = 0; round < kRounds; ++round) {
    PositiveFit<std::tuple_size_v<Traffic>> moved;
    for (const MeasuredPhases& p : phases) {
      // Workers that all-reduce step their optimizers too.
      if (p.servers == 0 || p.gpu > kFull || !(p.memory > 0) || !(p.computing > 0)) continue;
      const double measured = p.memory / 100 * p.computing / static_cast<double>(p.workers);
      double told = 0;
      for (size_t i = 0; i < found.size(); ++i) told += found[i] * p.traffic[i];
      const double error = round == 0 ? 1 : std::max(kLeastError, std::abs(told / measured - 1));
      moved.add(p.traffic, measured, 1 / error);
    }
    if (!moved.tells()) return;
    found = moved.solution();
  }
  rates.traffic = found;
  rates.memory_factor = 1;
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
  for (const RateField& field : kFurtherFields) {
    rates.*field.value = file->number_or(field.name, rates.*field.value, Sign::not_negative);
  }
  if (file->has("optimizer_passes")) {
    auto passes = file->object("optimizer_passes");
    for (size_t i = 0; i < kServerOptimizers.size(); ++i) {
      rates.optimizer_passes[i] = passes.number_or(kServerOptimizers[i], 0, Sign::not_negative);
    }
  }
  if (file->has("traffic")) {
    auto traffic = file->object("traffic");
    for (size_t i = 0; i < kTraffic.size(); ++i) rates.traffic[i] = traffic.number(kTraffic[i], Sign::not_negative);
  }
  if (file->has("sharing")) {
    auto settings = file->object("sharing");
    for (const std::string& setting : settings.keys()) {
      auto found = settings.object(setting);
      rates.sharing[setting] = {found.number("first_weight"), found.number("turn_bytes", Sign::not_negative),
                                found.number_or("first_turn_bytes", 0, Sign::not_negative),
                                found.number_or("head_bytes", 0, Sign::not_negative)};
    }
  }
  if (const Status status = file->status(); !status) return status.error();
  return rates;
}

std::string to_json(const HostRates& rates, const std::string& source) {
  nlohmann::ordered_json json = {{"format", "host_rates/1"}, {"source", source}};
  const auto rounded = [](double value) { return std::stod(fmt::format("{:.5g}", value)); };
  for (const RateField& field : kRateFields) json[field.name] = rounded(rates.*field.value);
  json["message_us"] = std::round(microseconds(rates.message));
  for (const RateField& field : kFurtherFields) json[field.name] = rounded(rates.*field.value);
  for (size_t i = 0; i < kServerOptimizers.size(); ++i) {
    json["optimizer_passes"][kServerOptimizers[i]] = rounded(rates.optimizer_passes[i]);
  }
  for (size_t i = 0; i < kTraffic.size(); ++i) json["traffic"][kTraffic[i]] = rounded(rates.traffic[i]);
  json["sharing"] = nlohmann::ordered_json::object();
  for (const auto& [setting, sharing] : rates.sharing) {
    json["sharing"][setting] = {{"first_weight", rounded(sharing.first_weight)},
                                {"turn_bytes", rounded(sharing.turn_bytes)},
                                {"first_turn_bytes", rounded(sharing.first_turn_bytes)},
                                {"head_bytes", rounded(sharing.head_bytes)}};
  }
  return json.dump(1) + "\n";
}

HostRates fit_host_rates(std::span<const MeasuredPhases> phases, const HostRates& first) {
  HostRates rates = first;
  fit_copies(phases, rates);
  fit_servers(phases, rates);
  fit_traffic(phases, rates);
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
  if (rates.traffic == first.traffic) rates.memory_factor = median_or(memory, first.memory_factor);
  return rates;
}

}  // namespace forerun::scale
