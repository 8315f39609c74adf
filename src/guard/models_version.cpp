#include "guard/models_version.h"

#include "base/provenance.h"

namespace forerun::guard {

Result<std::string> models_version() {
  const Result<std::string> data = data_fingerprint();
  if (!data) return data.error();
  return FORERUN_VERSION ", models " + text_fingerprint(kSourceFingerprint + *data);
}

}  // namespace forerun::guard
