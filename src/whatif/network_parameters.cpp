#include "whatif/network_parameters.h"

#include <fmt/format.h>

#include <cmath>

#include "base/data_dir.h"
#include "base/nearest.h"
#include "cost/analytic/full_machine.h"
#include "cost/collective/link_efficiency.h"
#include "cost/collective/link_name.h"
#include "device/catalogue.h"
#include "whatif/traced_gradients.h"

namespace forerun::whatif {
namespace {

Result<Link> link_called(const std::string& name) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  DeviceCatalogue catalogue;
  const Status status = catalogue.add_file(*folder / "devices" / "links.json");
  if (!status.ok()) return status.error();
  return network_by_name(name, catalogue);
}

Result<Link> network_of(const Parameters& parameters) {
  Result<Link> link = link_called(parameters.text("network", parameters.has("bandwidth_gbps") ? "100gbe" : "10gbe"));
  if (!link) return link.error().within("network");
  if (parameters.has("bandwidth_gbps")) {
    const Result<double> gbps = parameters.positive("bandwidth_gbps", 10);
    if (!gbps) return gbps.error();
    link->bandwidth = *gbps / 8 * 1e9;
    if (!parameters.has("network")) link->name = parameters.text("bandwidth_gbps") + " Gb/s";
  }
  if (parameters.has("latency_us")) {
    const Result<double> latency = parameters.positive("latency_us", 20);
    if (!latency) return latency.error();
    link->latency = nanoseconds_from_us(std::min(*latency, 1e9));
  }
  return link;
}

Result<Link> within_node(const EditableIteration& edited, const Parameters& parameters, int64_t gpus) {
  if (parameters.has("intra")) return link_called(parameters.text("intra"));
  if (edited.timer() != nullptr) {
    if (Link own = link_within(edited.timer()->device(), gpus); own.bandwidth > 0) return own;
  }
  return link_called("pcie4");
}

// Collectives of a trace that already is distributed make room.
bool remove_communication(GraphEdit& edit) {
  const std::vector<TaskId> gone = select(edit.original(), is_kind(TaskKind::communication));
  edit.remove(gone);
  return !gone.empty();
}

std::string description(const Topology& topology) {
  const auto link = [](const Link& l) {
    return fmt::format("{} ({:.4g} GB/s, {:.3g} us)", l.name, l.bandwidth / 1e9, microseconds(l.latency));
  };
  std::string text = fmt::format("{} GPUs, {} a machine", ranks_of(topology), topology.ranks_per_node);
  if (topology.nodes > 1) text += ", between machines " + link(topology.between);
  if (topology.ranks_per_node > 1) text += ", within " + link(topology.within);
  return text;
}

std::string reached_text(const Topology& topology, const CollectiveEfficiency& efficiency) {
  std::string text = "collectives reach";
  if (topology.nodes > 1) text += fmt::format(" {:.0f} % of the network", 100 * efficiency.between.share);
  if (topology.nodes > 1 && topology.ranks_per_node > 1) text += " and";
  if (topology.ranks_per_node > 1) text += fmt::format(" {:.0f} % of the links within", 100 * efficiency.within.share);
  return text + fmt::format(", and cost {:.0f} us a call; nothing else uses them",
                            microseconds(call_of(topology, efficiency)));
}

// Sets durations of the edit to what they are where communication and computation slow one another down.
Status contend(GraphEdit& edit, std::span<const ContendingTask> tasks) {
  std::vector<TaskId> now;
  const auto graph = build_contended(edit, tasks, now);
  if (!graph) return graph.error();
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].valid()) edit.set_duration(TaskId(i), graph->duration(now[i]));
  }
  return {};
}

}  // namespace

Result<WorkerLinks> worker_links(const EditableIteration& edited, const Parameters& parameters) {
  if (launches_graphs(edited.setup.compile)) {
    return Error{"what leaves CUDA graphs for other GPUs while they run is not predicted",
                 "compile:mode=" + std::string(name_of(edited.setup.compile)),
                 "take compile:mode=default or mode=max-autotune-no-cudagraphs"};
  }
  const auto workers = whole_number(parameters, "workers", 8);
  if (!workers) return workers.error();
  const auto per_node = whole_number(parameters, "per_node", 1);
  if (!per_node) return per_node.error();
  Topology topology;
  topology.ranks_per_node = std::min(*workers, *per_node);
  if (*workers % topology.ranks_per_node != 0) {
    return Error{fmt::format("{} workers do not fill machines of {}", *workers, *per_node), "per_node",
                 "give a number of workers that is a multiple of it"};
  }
  topology.nodes = *workers / topology.ranks_per_node;
  const auto between = network_of(parameters), within = within_node(edited, parameters, topology.ranks_per_node);
  if (!between) return between.error();
  if (!within) return within.error();
  topology.between = *between;
  topology.within = *within;
  const auto efficiency = usual_collective_efficiency();
  if (!efficiency) return efficiency.error();
  return WorkerLinks{reached(topology, *efficiency), call_of(topology, *efficiency), description(topology),
                     ranks_of(topology) < 2 ? "" : reached_text(topology, *efficiency)};
}

Result<AllReduce> algorithm_of(const Parameters& parameters) {
  const std::string name = parameters.text("algorithm", "fastest");
  const auto found = all_reduce_named(name);
  if (!found)
    return Error{"there is no all-reduce '" + name + "'", "algorithm", did_you_mean(name, all_reduce_names())};
  return *found;
}

Result<int64_t> whole_number(const Parameters& parameters, const std::string& key, int64_t otherwise) {
  const Result<double> value = parameters.positive(key, static_cast<double>(otherwise));
  if (!value) return value.error();
  if (*value != std::floor(*value) || *value < 1 || *value > 1e6) {
    return Error{"'" + parameters.text(key) + "' is no whole number from 1", key, "give one, as " + key + "=8"};
  }
  return static_cast<int64_t>(*value);
}

Result<Bytes> megabytes(const Parameters& parameters, const std::string& key, double otherwise) {
  const Result<double> value = parameters.positive(key, otherwise);
  if (!value && otherwise <= 0 && !parameters.has(key)) return Bytes(0);
  if (!value) return value.error();
  return Bytes(static_cast<int64_t>(std::min(*value, 1e9) * 1e6));
}

Status exchange_gradients(EditableIteration& edited, const Parameters& parameters, const GradientExchange& exchange,
                          const WorkerLinks& links, const std::string& what, const AlsoChange& also) {
  const Result<Bytes> given = megabytes(parameters, "gradients_mb", 0);
  if (!given) return given.error();
  const auto passes = traced_gradients(edited, *given);
  if (!passes) return passes.error();
  GraphEdit edit(edited.graph());
  if (remove_communication(edit)) edited.assume("communication that the trace holds is taken out");
  if (ranks_of(links.topology) > 1 && edited.full_machine_slowdown() > 1) {
    edit.scale(select(edited.graph(), is_on_gpu()), edited.full_machine_slowdown());
    edited.assume(full_machine_text(edited.full_machine_slowdown()));
  }
  std::vector<CarriedDependency> carried;
  ExchangeCounts counts = add_exchange(edit, *passes, exchange, carried);
  if (also) also(edit, *passes, counts, carried);
  edited.carried.insert(edited.carried.end(), carried.begin(), carried.end());
  edited.assume(what + links.text);
  if (!links.assumptions.empty()) edited.assume(links.assumptions);
  if (!counts.contending.empty()) edited.assume(contention_text());
  edited.assume(fmt::format("{} gradients of {:.1f} MB in all, {} messages an iteration; all workers alike",
                            passes->front().gradients.size(), static_cast<double>(counts.bytes.value) / 1e6,
                            counts.messages / static_cast<int64_t>(passes->size())));
  const Status status = contend(edit, counts.contending);
  return status.ok() ? edited.commit(edit) : status;
}

}  // namespace forerun::whatif
