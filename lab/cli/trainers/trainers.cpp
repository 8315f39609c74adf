#include "lab/cli/trainers/trainers.h"

#include "lab/learn/predictors.h"

namespace forerun::cli {

const std::vector<Trainer>& trainers() {
  static const std::vector<Trainer> list = [] {
    std::vector<Trainer> all = {
        hybrid_trainer(),  //
        driple_trainer(),  //
        habitat_trainer(),
        neusight_trainer(),
    };
    for (const learn::PredictorEntry& entry : learn::predictors()) {
      all.push_back(learned_trainer(std::string(entry.name), std::string(entry.summary), entry.in_epochs));
    }
    return all;
  }();
  return list;
}

}  // namespace forerun::cli
