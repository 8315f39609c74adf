// HostRates: what the hosts of a testbed do beside computation and links, and how their workers differ from one alone.
//
// First values are rough figures of one server, of hosts that share fairly. fit_host_rates finds what measured phases
// (`phases_ms` of resources/1 records) tell: copies, server updates and memory traffic by relative least squares with
// nothing below zero (of traffic the errors themselves, so that few strange models do not rule), the rest as medians.
// What only shows in a simulation is found by host_tuning.h.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "base/quantity.h"
#include "base/result.h"

namespace forerun::scale {

// What a server's optimizer is, by what its step takes on a CPU.
enum class ServerOptimizer : uint8_t { sgd, momentum, rmsprop, adam, adamw };
inline constexpr std::array<const char*, 5> kServerOptimizers = {"sgd", "momentum", "rmsprop", "adam", "adamw"};

// Bytes that ops read and write, by kind: what passes the GPU's second-level cache and what stays in it
// (memory_traffic.h); and the gradients, which copies move.
inline constexpr size_t kTrafficKinds = 5;
inline constexpr std::array<const char*, 2 * kTrafficKinds + 1> kTraffic = {"convolution_beyond_cache",
                                                                            "pointwise_convolution_beyond_cache",
                                                                            "grouped_convolution_beyond_cache",
                                                                            "product_beyond_cache",
                                                                            "other_beyond_cache",
                                                                            "convolution_in_cache",
                                                                            "pointwise_convolution_in_cache",
                                                                            "grouped_convolution_in_cache",
                                                                            "product_in_cache",
                                                                            "other_in_cache",
                                                                            "gradients"};
using Traffic = std::array<double, 2 * kTrafficKinds + 1>;

// What becomes of the few transfers of a server under Reno.
struct LinkSharing {
  double first_weight = 1;      // how much more than others the answer to worker 0 gets, else to the next
  double turn_bytes = 0;        // transfers to a server take turns of so many bytes; 0: they share the link
  double first_turn_bytes = 0;  // what one that had the link for itself still sends when others come; 0: a turn
  double head_bytes = 0;        // of the first of several answers, which go before the others come in
};

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

  double start_us = 0;          // until a transfer that begins has its rate
  double copy_tensor_us = 0;    // for each tensor of a copy
  double compute_extra_us = 0;  // of each iteration's computation
  double jitter = 0;            // computation varies by so much of itself, up and down
  // Workers that compute at once take (1 + (factor x workers x use)^power)^(1/power) times as long; the GPU, which goes
  // from one to the next, counts as busy for `linger` of what it would idle, for each worker beyond the first.
  double sharing_factor = 1;
  double sharing_power = 100;
  double linger = 0;
  double duplex_share = 1;                      // of a link's rate, each way, while a node both sends and receives
  double copy_use = 0;                          // of the GPU while a worker copies
  double async_passes = 0;                      // an asynchronous answer is a copy: so many times the bytes of adding
  std::array<double, 5> optimizer_passes = {};  // what steps take beyond plain SGD's, in the same
  Traffic traffic = {1, 1, 1, 1, 1};            // times the bytes of each kind
  // By setting and mode ("P1w2-10G sync"); others share fairly.
  std::map<std::string, LinkSharing> sharing;
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
  double to_device = -1;
  double tensors = 0;
  ServerOptimizer optimizer = ServerOptimizer::sgd;
  double computing = -1;  // of an iteration, in which any worker computes
  Traffic traffic = {};   // milliseconds at the memory's bandwidth, of one worker's iteration
};

// What the phases do not tell stays as in `first`.
HostRates fit_host_rates(std::span<const MeasuredPhases> phases, const HostRates& first);

}  // namespace forerun::scale
