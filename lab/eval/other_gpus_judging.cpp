#include "lab/eval/other_gpus_judging.h"

#include <fmt/format.h>

namespace forerun {

using learn::GpuWork;
using learn::OriginWork;
using learn::TimedWork;
using learn::TimedWorkTable;

std::string op_key(const std::string& op, const GpuWork& work) {
  const GemmShape& product = work.product;
  return fmt::format("{} {} {} {} {} {} {} {} {:.0f}", op, product.batch, product.m, product.n, product.k, work.window,
                     work.rows, work.width, work.bytes);
}

SharedOps::SharedOps(const TimedWorkTable& table) : table_(&table) {
  for (size_t i = 0; i < table.rows.size(); ++i) {
    places_[op_key(table.rows[i].op, table.rows[i].work)].emplace(table.rows[i].gpu, i);
  }
}

const TimedWork* SharedOps::on(size_t gpu, const std::string& op, const GpuWork& work) const {
  const auto known = places_.find(op_key(op, work));
  if (known == places_.end()) return nullptr;
  const auto row = known->second.find(gpu);
  return row == known->second.end() ? nullptr : &table_->rows[row->second];
}

PairsByKind judge_ops(learn::OtherGpuPredictor& predictor, const std::vector<JudgedOp>& ops, const Device& destination,
                      const TimedWorkTable& table, const SharedOps& shared, const std::vector<size_t>& origins) {
  PairsByKind pairs;
  const auto ask = [&](const std::vector<OriginWork>& work, const std::vector<const JudgedOp*>& judged,
                       const Device& origin) {
    const std::vector<double> us = predictor.predict(work, origin, destination);
    for (size_t i = 0; i < judged.size(); ++i) pairs[judged[i]->kind].push_back({judged[i]->us, us[i]});
  };
  if (!predictor.needs_origin()) {
    std::vector<OriginWork> work;
    std::vector<const JudgedOp*> judged;
    for (const JudgedOp& op : ops) {
      work.push_back({.work = op.work, .us = 0, .launch = {}});
      judged.push_back(&op);
    }
    ask(work, judged, destination);
    return pairs;
  }
  for (const size_t origin : origins) {
    if (table.devices[origin].name == destination.name) continue;
    std::vector<OriginWork> work;
    std::vector<const JudgedOp*> judged;
    for (const JudgedOp& op : ops) {
      const TimedWork* there = shared.on(origin, op.op, op.work);
      if (there == nullptr) continue;
      work.push_back({.work = op.work, .us = there->us, .launch = there->launch});
      judged.push_back(&op);
    }
    if (!work.empty()) ask(work, judged, table.devices[origin]);
  }
  return pairs;
}

}  // namespace forerun
