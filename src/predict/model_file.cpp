#include "predict/model_file.h"

#include <filesystem>

#include "base/nearest.h"
#include "predict/model_name.h"
#include "zoo/checkpoints.h"

namespace forerun {
Result<std::optional<FileKind>> model_file(const std::string& model, std::string_view verb) {
  if (!names_file(model)) return std::optional<FileKind>();
  const auto kind = sniff_file(model);
  if (!kind) {
    Error problem = kind.error();
    std::error_code none;
    if (!std::filesystem::exists(model, none)) {
      problem.remedy += "; models are named as `forerun zoo` lists them";
      const std::string meant = did_you_mean(model, zoo::names_of_organisation(model));
      if (!meant.empty()) problem.remedy += ": " + meant;
    }
    return problem;
  }
  if (takes(verb, *kind) || *kind == FileKind::stream) return std::optional(*kind);
  return refused_file(*kind, model, verb, "a name from `forerun zoo`");
}

}  // namespace forerun
