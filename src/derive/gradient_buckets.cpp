#include "derive/gradient_buckets.h"

namespace forerun {

std::vector<size_t> bucket_ends(std::span<const Bytes> gradients, Bytes first, Bytes others) {
  std::vector<size_t> ends;
  Bytes filled{};
  for (size_t i = 0; i < gradients.size(); ++i) {
    filled += gradients[i];
    if (i + 1 < gradients.size() && filled < (ends.empty() ? first : others)) continue;
    ends.push_back(i);
    filled = Bytes(0);
  }
  return ends;
}

}  // namespace forerun
