// forerun train hybrid, host, intervals, devices: the parts of `forerun predict` that are fitted to measurements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forerun::cli {

struct PartOptions {
  std::string name;
  std::vector<std::string> records;  // files or folders; empty: the data folder's
  std::vector<std::string> without;  // families
  std::string out;                   // file; empty: where `forerun predict` looks
  int folds = 0;
  int64_t seed = 1;
  bool json = false;
};

struct PartEntry {
  const char* name;
  const char* summary;
};
const std::vector<PartEntry>& trained_parts();

// The options that training a part reads.
std::vector<std::string> options_of_part(const std::string& name);

// Trains the part of that name, which is one of these.
int train_part(const PartOptions& options);

}  // namespace forerun::cli
