// LibTorch's headers, the way learn/ includes them: those parts that it uses, since all of torch/torch.h takes twice as
// long to compile, and without the logging macro CHECK of theirs (glog's in some builds), which would take the place of
// ours (base/check.h). Works before and after base/check.h.
#pragma once

#pragma push_macro("CHECK")
#undef CHECK
#include <torch/cuda.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>
#undef CHECK
#pragma pop_macro("CHECK")
