#include "cost/op_cost.h"

namespace forerun {

std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::none: return "none";
    case Bound::compute: return "compute";
    case Bound::memory: return "memory";
    case Bound::latency: return "latency";
  }
  return "?";
}

}  // namespace forerun
