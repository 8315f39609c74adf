// Shortest service first: by predicted duration x GPUs of the gang, the area a job takes. Running jobs are left alone;
// srsf-preempt (preemptive.cpp) stops them.
#include "cluster/policies/factories.h"
#include "cluster/policies/in_order.h"
#include "cluster/service.h"

namespace forerun::cluster {
namespace {

int64_t by_service(const ClusterView& view, JobIndex job) {
  return gpu_time(view.predicted_fastest(job), view.job(job).gpus);
}

}  // namespace

std::unique_ptr<Policy> make_srsf(OptionReader& /*options*/) { return std::make_unique<HeadOfLine>(by_service); }
std::unique_ptr<Policy> make_srsf_skip(OptionReader& /*options*/) { return std::make_unique<SkipOver>(by_service); }

}  // namespace forerun::cluster
