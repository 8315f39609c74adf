// What simulated distributed training does to GPU and network, as text, JSON and a picture.
#pragma once

#include <cstdint>
#include <string>

#include "scale/resource_simulation.h"

namespace forerun {

struct ResourceAnswer {
  std::string model;
  std::string gpu;
  std::string setting;  // "P1w2-10G"
  std::string mode;     // sync, async or allreduce
  int64_t batch = 0;    // of each worker
  int64_t parameters = 0;
  bool shared_gpu = true;
  scale::ResourceUse use;
};

std::string to_text(const ResourceAnswer& answer);
std::string to_json(const ResourceAnswer& answer);  // fields are called as in resources/1 records (docs/records.md)
std::string to_svg(const ResourceAnswer& answer);

}  // namespace forerun
