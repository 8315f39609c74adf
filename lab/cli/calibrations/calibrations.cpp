#include "lab/cli/calibrations/calibrations.h"

namespace forerun::cli {

const std::vector<Calibration>& calibrations() {
  static const std::vector<Calibration> list = {
      host_calibration(),       //
      intervals_calibration(),  //
      devices_calibration(),    //
      scale_calibration(),      //
      testbed_calibration(),    //
      convolutions_calibration(),
  };
  return list;
}

}  // namespace forerun::cli
