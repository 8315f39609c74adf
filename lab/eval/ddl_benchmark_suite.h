// "How near do predicted throughputs of data-parallel training come?": the table of `forerun eval --suite ddl-benchmark`.
//
// In: the throughput of one GPU, the model (from the zoo, its ops timed by the cost model for the benchmark's RTX 2080 Ti
// and scaled to that throughput), the kind of network. Out: the throughput of 4 to 32 GPUs, four in a machine, for each
// schedule of gradients; made by the exchanges that `forerun whatif` applies to traces (timeline/gradient_exchange.h).
// Latencies are the catalogue's; what a link carries is fitted to the bulk-synchronous rows, for each model as it used
// the network (some rows of the benchmark ran over another network than they say, which a fit by model can tell and one
// by network cannot; the error of the latter is reported beside it). How the benchmark ran, from its scripts: tensors
// agreed on by Horovod one by one; BytePS with one server for each machine and parts of 4 MB; ByteScheduler with parts of
// 4 MB, 16 MB under way, and a wait for the device behind every step, so that no exchange reaches into the next.
#pragma once

#include <string>

#include "base/work_control.h"
#include "lab/accuracy/throughput_accuracy.h"

namespace forerun {

// `path`: the benchmark's table; empty: the data set hkbu/throughput.csv. Progress counts rows fitted.
Result<ThroughputAccuracy> evaluate_ddl_benchmark(const std::string& path, const WorkControl& control = {});

}  // namespace forerun
