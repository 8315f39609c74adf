// Shortest job first: by predicted duration on the job's fastest GPU type. Running jobs are left alone.
#include "cluster/policies/factories.h"
#include "cluster/policies/in_order.h"

namespace forerun::cluster {
namespace {

int64_t by_duration(const ClusterView& view, JobIndex job) { return view.predicted_fastest(job).value; }

}  // namespace

std::unique_ptr<Policy> make_sjf(OptionReader& /*options*/) { return std::make_unique<HeadOfLine>(by_duration); }
std::unique_ptr<Policy> make_sjf_skip(OptionReader& /*options*/) { return std::make_unique<SkipOver>(by_duration); }

}  // namespace forerun::cluster
