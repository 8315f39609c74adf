// HostRates: what the hosts of a testbed do beside computation and links, and how their workers differ from one alone.
//
// First values are rough figures of one server; fit_host_rates finds them from measured phases (`phases_ms` of resources/1
// records): copies and server updates by relative least squares of a constant and a rate, the rest as medians.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/quantity.h"
#include "base/result.h"

namespace forerun::scale {

struct HostRates {
  double copy_bytes_per_second = 20e9;         // between host and GPU
  double server_bytes_per_second = 4e9;        // gradients that a server adds up, for each worker
  double update_bytes_per_second = 2e9;        // parameters that its optimizer steps
  double link_share = 0.94;                    // of the link's rate, by what TCP carries
  double most_bits_per_second = 26e9;          // that one core carries over a virtual link
  Nanoseconds message = Nanoseconds(300'000);  // before the first byte of an exchange
  double compute_factor = 1;                   // times the predicted computation
  double gpu_factor = 1;                       // times the predicted use of the GPU, and of its memory
  double memory_factor = 1;
};

Result<HostRates> read_host_rates(const std::filesystem::path& path);
std::string to_json(const HostRates& rates, const std::string& source);

// What a record measured, and what the simulation said with factors of 1; times in milliseconds, below zero: unknown.
struct MeasuredPhases {
  double bytes = 0;  // of gradients
  int64_t servers = 0;
  int64_t workers = 1;
  bool sync = true;
  double bits_per_second = 0;
  double to_host = -1, exchange = -1, server_update = -1, compute = -1;
  double simulated_compute = -1;
  double gpu = -1, simulated_gpu = -1;  // percent while computing
  double memory = -1, simulated_memory = -1;
};

// What the phases do not tell stays as in `first`.
HostRates fit_host_rates(std::span<const MeasuredPhases> phases, const HostRates& first);

}  // namespace forerun::scale
