// EnvironmentDecoder: an entry of `env`, or of an env/1 line -> Environment. Entries it does not know and nulls are
// passed over.
#pragma once

#include "graph/training_run.h"
#include "ingest/capture/json_walk.h"

namespace forerun {

class EnvironmentDecoder : public JsonWalk {
 public:
  bool entry(std::string_view key, Value value, Environment& env) {
    std::string* out = key == "gpu"     ? &env.gpu
                       : key == "torch" ? &env.torch
                       : key == "cuda"  ? &env.cuda
                       : key == "host"  ? &env.host
                       : key == "date"  ? &env.date
                                        : nullptr;
    if ((out == nullptr && key != "cudnn") || is_null(value)) return true;
    return out == nullptr ? whole(value, "env.cudnn", env.cudnn) : text(value, "an entry of env", *out);
  }
};

}  // namespace forerun
