#include "predict/memory_answer.h"

namespace forerun {

std::string_view name_of(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::fits: return "fits";
    case FitVerdict::may_not_fit: return "may_not_fit";
    case FitVerdict::does_not_fit: return "does_not_fit";
  }
  return "?";
}

}  // namespace forerun
