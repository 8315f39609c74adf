// Earliest deadline first: jobs without a deadline come last, in order of arrival. Running jobs are left alone.
#include "cluster/policies/factories.h"
#include "cluster/policies/in_order.h"

namespace forerun::cluster {
namespace {

int64_t by_deadline(const ClusterView& view, JobIndex job) { return view.job(job).deadline.value; }

}  // namespace

std::unique_ptr<Policy> make_edf(OptionReader& /*options*/) { return std::make_unique<HeadOfLine>(by_deadline); }
std::unique_ptr<Policy> make_edf_skip(OptionReader& /*options*/) { return std::make_unique<SkipOver>(by_deadline); }

}  // namespace forerun::cluster
