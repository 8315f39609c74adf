// GPUs by the names that examples carry: what the catalogue knows, read once for each KnownDevices.
#pragma once

#include <string>

#include "base/data_dir.h"
#include "device/catalogue.h"

namespace forerun::learn {

class KnownDevices {
 public:
  KnownDevices() {
    const auto folder = data_dir();
    if (!folder) return;
    if (auto loaded = load_devices(*folder / "devices")) catalogue_ = std::move(*loaded);
  }
  // A device of a name that the catalogue does not know is 0 throughout.
  [[nodiscard]] Device find(const std::string& name) const {
    const auto device = catalogue_.find(name);
    return device ? *device : Device();
  }

 private:
  DeviceCatalogue catalogue_;
};

}  // namespace forerun::learn
