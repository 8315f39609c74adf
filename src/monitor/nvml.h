// A GPU's utilisation as NVIDIA's management library tells it, loaded at run time: the program runs without it.
//
// Three sources. Rates: one number for the driver's last window of 1/6 s to 1 s; cheap. Samples: the driver's own buffer of
// such numbers with their times. In both `memory` is the share of time in which the memory was read or written. GPM (Hopper
// and later): hardware counters, which the driver renews every 100 ms (seen on an H200), give exact shares of the time
// between two readings; `memory` is the share of the DRAM's peak bandwidth. A reading of Samples or GPM takes milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::monitor {

enum class GpuSource { kNone, kRates, kSamples, kGpm };

std::string name(GpuSource source);  // "none", "rates", "samples", "gpm"

struct GpuReading {
  int64_t ns = 0;     // CLOCK_MONOTONIC; the end of the interval it stands for
  double gpu = 0;     // percent
  double memory = 0;  // percent
};

class Gpu {
 public:
  // An error where there is no driver, no such GPU, or the library lacks a function.
  static Result<Gpu> open(int index);

  Gpu(Gpu&&) noexcept;
  Gpu& operator=(Gpu&&) noexcept;
  ~Gpu();

  [[nodiscard]] const std::string& model() const;
  [[nodiscard]] const std::string& driver() const;
  [[nodiscard]] bool has_gpm() const;

  // Appends what is new since the last call; at most one reading from GPM and Rates. False where the source failed.
  bool read(GpuSource source, std::vector<GpuReading>& readings);

  // The finest source that answers.
  [[nodiscard]] GpuSource best_source();

 private:
  struct Library;
  explicit Gpu(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace forerun::monitor
