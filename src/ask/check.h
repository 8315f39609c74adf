// Guards asked: predictions of now, judged against forerun.lock. `forerun check` and forerun.check ask for those of a
// forerun.toml; who predicts by himself, as the pytest plugin, has his figures judged (the question `judge`).
#pragma once

#include <string>
#include <vector>

#include "ask/ask.h"
#include "guard/judgement.h"

namespace forerun::ask {

struct CheckRequest {
  std::string file = "forerun.toml";
  std::string lock;     // empty: forerun.lock beside the file
  bool update = false;  // keep the figures of now as the baseline
};

Result<guard::CheckAnswer> check(const CheckRequest& request, const Asking& asking);

}  // namespace forerun::ask
