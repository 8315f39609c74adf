// Stands in for predictors.cpp in a build without LibTorch: there are no learned predictors, and asking for one says why.
#include "lab/dataset/driple/resource_predictor.h"
#include "lab/dataset/other_gpus/other_gpu_predictor.h"
#include "lab/learn/predictors.h"

namespace forerun::learn {
namespace {

Error missing() {
  return {"this program was built without LibTorch and has no learned predictors", "",
          "install libtorch-dev and libopenblas-dev and build again (`./run build`)"};
}

}  // namespace

const std::vector<PredictorEntry>& predictors() {
  static const std::vector<PredictorEntry> none;
  return none;
}

Result<std::unique_ptr<Predictor>> make_predictor(std::string_view /*name*/) { return missing(); }

Status save_weights(const std::string& /*folder*/, std::string_view /*name*/, const Predictor& /*predictor*/,
                    const DataSet& /*data*/, const TrainOptions& /*options*/, const TrainingLog& /*log*/) {
  return missing();
}

Status check_start(const std::string& /*folder*/, const Division& /*division*/) { return missing(); }

Result<LoadedPredictor> load_weights(const std::string& /*folder*/) { return missing(); }

Result<std::unique_ptr<ResourcePredictor>> make_driple() { return missing(); }

Result<std::unique_ptr<OtherGpuPredictor>> make_other_gpu_predictor(std::string_view /*name*/) { return missing(); }

}  // namespace forerun::learn
