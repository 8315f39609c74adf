#include "memory/memory_estimate.h"

namespace forerun {

void set_parts(const BytesByUse& live, MemoryEstimate& estimate) {
  const auto part = [&](Use use) { return Bytes(live[static_cast<size_t>(use)]); };
  estimate.parameters = part(Use::parameter);
  estimate.buffers = part(Use::buffer);
  estimate.optimizer_state = part(Use::state);
  estimate.inputs = part(Use::input);
  estimate.gradients = part(Use::gradient);
  estimate.activations = part(Use::activation);
  estimate.temporaries = part(Use::temporary);
  estimate.workspaces = part(Use::workspace);
}

}  // namespace forerun
