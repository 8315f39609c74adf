// DeviceCatalogue: the GPUs and links known by name, read from JSON files.
//
// One file describes one GPU:
//   {"format": "device/1", "name": "NVIDIA T4", "aliases": ["t4"], "vendor": "NVIDIA",
//    "sources": {"turing": "NVIDIA Turing GPU Architecture whitepaper, 2018"},
//    "sm_count": {"value": 40, "source": "turing"}, ...}
// Every number is a {value, source} pair whose source is one of `sources`; a number without one is an Error. Rates that
// a GPU does not have may be left out; all other numbers must be there, finite and positive. What may be left out
// besides, and what is assumed then, stands in data/devices/README.md. `links.json` ({"format": "links/1", "sources":
// {...}, "links": [...]}) describes connections the same way. User files add GPUs, or replace one by giving its name.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace forerun {

class DeviceCatalogue {
 public:
  // Reads one device/1 or links/1 file. A device or link of a known name replaces the older one.
  Status add_file(const std::filesystem::path& path);
  Status add(Device device);
  Status add(Link link);

  // By name or alias; case, spaces, dashes and underscores do not count. Unknown: an Error with the nearest names.
  [[nodiscard]] Result<Device> find(std::string_view name) const;
  [[nodiscard]] Result<Link> find_link(std::string_view name) const;

  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }

 private:
  std::vector<Device> devices_;
  std::vector<Link> links_;
  std::map<std::string, size_t> device_places_,
      link_places_;  // among those, by name and alias without case, spaces and the like
};

// All *.json files of a folder, in order of their names.
Result<DeviceCatalogue> load_devices(const std::filesystem::path& folder);

}  // namespace forerun
