// How long a job is and what its GPUs cost: shared by the verbs that tell its hours.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "api/predict.h"
#include "api/prices.h"

namespace forerun::cli {

// --iterations, --samples, --tokens, or --epochs with --dataset-size: "100000", "1.28M", "15T".
void add_job_options(CLI::App& verb, JobLength& length);

struct PriceOptions {
  std::string file;
  std::vector<std::string> given;
  [[nodiscard]] bool any() const { return !file.empty() || !given.empty(); }
};

// --prices FILE and --price GPU=PRICE.
void add_price_options(CLI::App& verb, PriceOptions& options);

Result<Prices> asked_prices(const PriceOptions& options, const DeviceCatalogue& devices);

}  // namespace forerun::cli
