// ZeRO: optimizer state (stage 1), gradients (2) and parameters (3) are shared out among the workers.
//
// Source: Rajbhandari et al. (2020), as timeline/sharded_exchange.h has it.
#include "timeline/exchange_costs.h"
#include "timeline/sharded_exchange.h"
#include "whatif/network_parameters.h"

namespace forerun::whatif {

Status apply_zero(EditableIteration& edited, const Parameters& parameters) {
  const std::string stage = parameters.text("stage", "2");
  if (stage != "1" && stage != "2" && stage != "3") {
    return Error{"there is no stage '" + stage + "'", "zero", "there are 1, 2 and 3"};
  }
  const auto links = worker_links(edited, parameters);
  if (!links) return links.error().within("zero");
  const int number = stage.front() - '0';
  if (number == 3 && edited.setup.compile != CompileMode::none) {
    return Error{"parameters are gathered block by block, and a generated kernel may belong to several", "zero:stage=3",
                 "ask `forerun scale MODEL --compile --strategy fsdp`, or take stage 1 or 2"};
  }
  if (number >= 2 && edited.setup.accumulate > 1) {
    return Error{"stages 2 and 3 exchange in every micro-batch, as FSDP and DeepSpeed do, and here once an iteration",
                 "zero:stage=" + stage,
                 "ask `forerun scale MODEL --strategy zero" + stage + " --accumulate N`, or take stage 1"};
  }
  const ShardedTraining sharded{number, links->topology, links->call, gathered_share(number, edited.setup.precision)};
  GradientExchange exchange = by_reduce_scatter(links->topology, links->call);
  exchange.grouping = sharded_grouping(number);
  return exchange_gradients(
      edited, parameters, exchange, *links, "zero: stage " + stage + ", ",
      [&](GraphEdit& edit, const std::vector<BackwardPass>& passes, ExchangeCounts& counts,
          std::vector<CarriedDependency>& carried) { share_out(edit, passes, sharded, counts, carried); });
}

}  // namespace forerun::whatif
