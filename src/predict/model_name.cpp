#include "predict/model_name.h"

#include <filesystem>

#include "zoo/zoo.h"

namespace forerun {
bool names_file(const std::string& model) {
  if (zoo::is_known_name(model)) return false;
  std::error_code none;
  return model.find_first_of("/.") != std::string::npos || std::filesystem::exists(model, none);
}

}  // namespace forerun
