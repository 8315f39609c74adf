// What GPUs cost, as the user knows it: by --price on the command line or from a file. Forerun knows no prices of its own.
//
// A price file is TOML (examples/prices.toml):
//   currency = "USD"      # optional, and only printed
//   [per_hour]            # of one GPU, by any name of `forerun devices`
//   h100 = 2.5
//   "NVIDIA A100-SXM4-80GB" = 1.2
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/catalogue.h"
#include "predict/job_time.h"

namespace forerun {

// What an hour of one GPU costs, in whatever currency the user thinks in.
struct GpuPrice {
  std::string gpu;  // as the catalogue has it
  double per_hour = 0;
};

struct Prices {
  std::string currency;  // "USD"; empty: not told
  std::vector<GpuPrice> gpus;

  [[nodiscard]] std::optional<double> of(const std::string& gpu) const;
  [[nodiscard]] bool any() const { return !gpus.empty(); }
};

// "h100=2.5,a100=1.2", each GPU by name or alias and once. A price is from 0 to a million.
Result<std::vector<GpuPrice>> parse_prices(const std::vector<std::string>& texts, const DeviceCatalogue& devices);

// A price file, and the same from its text; `where` names it in Errors, which have the line.
Result<Prices> read_prices(const std::string& file, const DeviceCatalogue& devices);
Result<Prices> parse_price_file(const std::string& text, const std::string& where, const DeviceCatalogue& devices);

// Prices as they were asked for: those of the file (empty: none), with those of the command line in their place.
Result<Prices> asked_prices(const std::string& file, const std::vector<std::string>& texts,
                            const DeviceCatalogue& devices);

// The price of a run's GPU; nothing where no prices were asked for. An Error where they were and have none for it, or where the run's
// length is not told, without which a price says nothing.
Result<std::optional<double>> price_of_run(const Prices& prices, const Device& device, const JobLength& job);

}  // namespace forerun
