// What would an optimization bring to a traced iteration?
#pragma once

#include <string>
#include <vector>

#include "api/knowledge.h"
#include "ingest/trace/trace.h"
#include "report/whatif.h"

namespace forerun {

struct WhatIfQuestion {
  std::vector<std::string> applications;  // "amp", "batch:factor=2": applied in this order
  std::string gpu;                        // in the catalogue; empty: the one that the trace names
  bool unprofiled = false;                // take out what the profiler cost the host
};

Result<WhatIfAnswer> what_if(const Trace& trace, const WhatIfQuestion& question, const Knowledge& knowledge);

// Every optimization that makes sense without parameters, alone; the largest gain first. Those that do not apply to the
// trace are left out.
Result<std::vector<WhatIfAnswer>> rank_what_ifs(const Trace& trace, const WhatIfQuestion& question,
                                                const Knowledge& knowledge);

}  // namespace forerun
