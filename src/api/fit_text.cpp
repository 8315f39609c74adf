// The words of api/fit.h: what is kept free, and how far a run may be above its prediction.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "api/fit.h"

namespace forerun {

Status parse_reserve(const std::string& text, FitRequest& request) {
  const Error fault{fmt::format("the reserve cannot be '{}'", text), "--reserve",
                    "give a share or a size: 5%, 2GiB, 512MiB"};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  if (end == text.c_str() || !std::isfinite(number) || number < 0 || number > 1e9) return fault;
  request.reserve_share = 0;
  if (unit == "%" && number < 100) {
    request.reserve_share = number / 100;
  } else if (unit == "GiB" || unit == "MiB") {
    request.reserve = Bytes(std::llround(number * (unit == "GiB" ? 1024.0 : 1.0) * 1024 * 1024));
  } else {
    return fault;
  }
  return {};
}

Status parse_margin(const std::string& text, FitRequest& request) {
  if (text == "range") return {};
  request.memory.margin = 0;
  if (text == "none") return {};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || std::string(end) != "%" || !std::isfinite(number) || number < 0 || number > 1000) {
    return Error{fmt::format("the margin cannot be '{}'", text), "--margin", "give range, none or a share: 5%"};
  }
  request.memory.margin = number / 100;
  return {};
}

}  // namespace forerun
