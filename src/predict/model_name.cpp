#include "predict/model_name.h"

#include <algorithm>
#include <filesystem>

#include "zoo/zoo.h"

namespace forerun {
namespace {

bool is_zoo_name(const std::string& model) {
  const auto named = [&](const auto& entry) { return entry.name == model; };
  return std::any_of(zoo::models().begin(), zoo::models().end(), named) ||
         std::any_of(zoo::families().begin(), zoo::families().end(), named);
}

}  // namespace

bool names_file(const std::string& model) {
  if (is_zoo_name(model)) return false;
  std::error_code none;
  return model.find_first_of("/.") != std::string::npos || std::filesystem::exists(model, none);
}

}  // namespace forerun
