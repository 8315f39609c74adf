// LibTorch's headers, the way learn/ includes them: without the logging macro CHECK of theirs (glog's in some builds),
// which would take the place of ours (base/check.h). Works before and after base/check.h.
#pragma once

#pragma push_macro("CHECK")
#undef CHECK
#include <torch/torch.h>
#undef CHECK
#pragma pop_macro("CHECK")
