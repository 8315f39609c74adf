#include "records/data_configuration.h"

#include <fmt/format.h>

namespace forerun {

std::string configuration_of(const TrainingRun& run) {
  if (run.family == "capture") return "";
  const InputSpec& in = run.input;
  const OptimizerSpec& o = run.setup.optimizer;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", run.family, run.arguments, name_of(in.kind),
                     in.batch, in.channels, in.size, in.classes, in.flavour, name_of(run.setup.precision),
                     name_of(o.kind), name_of(o.impl), o.momentum, o.weight_decay, run.setup.channels_last,
                     run.setup.accumulate, name_of(run.backend), run.environment.gpu);
}

std::string workload_of(const TrainingRun& run) {
  if (run.family == "capture") return run.id;
  const InputSpec& in = run.input;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", run.family, run.arguments, name_of(in.kind), in.batch, in.channels,
                     in.size, in.classes, in.flavour, name_of(run.setup.precision));
}

}  // namespace forerun
