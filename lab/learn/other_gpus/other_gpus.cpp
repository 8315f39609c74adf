#include <algorithm>

#include "base/nearest.h"
#include "lab/learn/other_gpus/habitat.h"
#include "lab/learn/other_gpus/neusight.h"

namespace forerun::learn {

Result<std::unique_ptr<OtherGpuPredictor>> make_other_gpu_predictor(std::string_view name) {
  if (name == "habitat") return std::unique_ptr<OtherGpuPredictor>(std::make_unique<Habitat>());
  if (name == "neusight") return std::unique_ptr<OtherGpuPredictor>(std::make_unique<NeuSight>());
  return Error{"there is no predictor of other GPUs '" + std::string(name) + "'", "",
               did_you_mean(std::string(name), {"habitat", "neusight"})};
}

}  // namespace forerun::learn
