// Knowledge: what every prediction draws on, read once from the data folder: devices, cost constants, host costs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cost/analytic/constants.h"
#include "cost/host/host.h"
#include "device/catalogue.h"

namespace forerun {

struct Knowledge {
  DeviceCatalogue devices;
  AnalyticConstants analytic;
  HostConstants host;
};

// `device_files`: further devices from the user.
Result<Knowledge> load_knowledge(const std::vector<std::string>& device_files = {});

}  // namespace forerun
