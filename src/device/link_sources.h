// Where the figures of links come from: what the files of the catalogue (device/catalogue.h) name for each. No prediction needs
// it, so the catalogue does not keep it, and whoever lists links reads it again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun {

struct FigureSources {
  std::string bandwidth, latency;
};

using LinkSources = std::map<std::string, FigureSources>;  // by the link's name

// Of the links of the data folder, and of the user's further files.
Result<LinkSources> load_link_sources(const std::vector<std::string>& further = {});

}  // namespace forerun
