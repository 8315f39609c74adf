// What a trace does not have, drawn at random: durations on further GPU types and deadlines, as the authors of Hydra's cases
// drew them for theirs.
//
//   v100=1.4..2            jobs take 1.4 to 2 times as long on a v100 as stated, an even draw for each
//   deadlines=30           30 % of the jobs get a deadline: their submission plus
//   slack=1.2..3           1.2 to 3 times their duration on a type drawn evenly of those they can run on
//   seed=1
//
// Types that are not named take as long as stated.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/machine.h"

namespace forerun::cluster {

struct DrawnRange {
  double least = 1, most = 1;
};

struct DrawOptions {
  struct Slower {
    std::string type;  // canonical
    DrawnRange factor;
  };
  std::vector<Slower> types;
  double deadlines = 0;  // share of the jobs, 0 to 1
  DrawnRange slack{1.2, 3};
  uint64_t seed = 1;
};

Result<DrawOptions> parse_draw(const std::string& text);

// Adds what is drawn, and says in words what that is. What the jobs state already is not drawn again: an Error.
Result<std::vector<std::string>> draw(Workload& workload, const Cluster& cluster, const DrawOptions& options);

}  // namespace forerun::cluster
