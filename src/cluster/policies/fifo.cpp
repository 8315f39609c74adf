// First in, first out: in order of arrival; jobs that arrive at once keep the order of their source.
#include "cluster/policies/factories.h"
#include "cluster/policies/in_order.h"

namespace forerun::cluster {
namespace {

int64_t by_arrival(const ClusterView& /*view*/, JobIndex /*job*/) { return 0; }  // ties go by order of arrival

}  // namespace

std::unique_ptr<Policy> make_fifo(OptionReader& /*options*/) { return std::make_unique<HeadOfLine>(by_arrival); }
std::unique_ptr<Policy> make_fifo_skip(OptionReader& /*options*/) { return std::make_unique<SkipOver>(by_arrival); }

}  // namespace forerun::cluster
