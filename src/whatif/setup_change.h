// A change of precision, layout, optimizer or batch applied to a traced iteration.
//
// Source: the project's own models. The iteration is derived again from the traced forward pass, before and after; what the
// cost models say of each call (kernels and host, forward and backward) scales what was traced of it. So casts, other
// kernels and other types are in the ratio, and the measured time stays the base. Calls that the file does not tell apart
// share their phase's ratio. An update in another implementation replaces the traced one. A model of which nothing else was changed is
// derived anew as a whole.
#pragma once

#include "whatif/editable_iteration.h"

namespace forerun::whatif {

// An Error where the trace does not let its forward pass be rebuilt.
Status change_setup(EditableIteration& edited, const TrainingSetup& to, double batch_factor);
// The same on another device.
Status change_setup(EditableIteration& edited, const TrainingSetup& to, double batch_factor, const OpTimer& device);

}  // namespace forerun::whatif
