#include "predict/model_file.h"

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

// "runs/a" and "a.json" are paths whether something is there or not.
bool names_file(const std::string& name) {
  std::error_code none;
  return name.find_first_of("/.") != std::string::npos || std::filesystem::exists(name, none);
}

}  // namespace

Result<std::optional<FileKind>> model_file(const std::string& model, std::string_view verb) {
  if (is_zoo_name(model) || !names_file(model)) return std::optional<FileKind>();
  const auto kind = sniff_file(model);
  if (!kind) {
    Error problem = kind.error();
    std::error_code none;
    if (!std::filesystem::exists(model, none)) problem.remedy += "; models are named as `forerun zoo` lists them";
    return problem;
  }
  if (takes(verb, *kind) || *kind == FileKind::stream) return std::optional(*kind);
  return refused_file(*kind, model, verb, "a name from `forerun zoo`");
}

}  // namespace forerun
