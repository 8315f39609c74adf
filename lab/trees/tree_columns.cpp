#include "lab/trees/tree_columns.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace forerun::learn {
namespace {

constexpr int64_t kKindsAround[] = {-6, -5, -4, -3, -2, -1, 1, 2, 3, 4};
constexpr int64_t kTimesAround[] = {-4, -3, -2, -1, 0, 1, 2};
constexpr size_t kBehind = 16;
constexpr size_t kAhead = 8;

double ln_above_a_tenth(double x) { return std::log(std::max(x, 0.1)); }
double signed_ln(double x) { return x < 0 ? -std::log1p(-x) : std::log1p(x); }

}  // namespace

void add_op_columns(const OpRow& row, const OpFigures& figures, const LaneOp& op, std::vector<float>& out) {
  const size_t before = out.size();
  out.push_back(static_cast<float>(op.kind()));
  out.push_back(static_cast<float>(op.name));
  out.push_back(op.forward ? 0.0F : 1.0F);
  out.push_back(static_cast<float>(op.type));
  add_figure_columns(row, figures, out);
  CHECK(out.size() - before == kOpColumns, "every column of an op");
}

void add_neighbour_columns(std::span<const LaneOp> ops, std::span<const OpFigures> figures,
                           std::span<const uint32_t> rows, size_t at, std::vector<float>& out) {
  const size_t before = out.size();
  const auto add = [&](double value) { out.push_back(static_cast<float>(value)); };
  // The same op once more; or one of the same kind and product, as a bias is beside its linear layer.
  const auto alike = [&](size_t a, size_t b) {
    const OpFigures& x = figures[a];
    const OpFigures& y = figures[b];
    return ops[a].kind() == ops[b].kind() && x.m == y.m && x.n == y.n && x.k == y.k && x.elements == y.elements;
  };
  add(at == 0 ? 0 : rows[at] == rows[at - 1] ? 2 : alike(at, at - 1) ? 1 : 0);
  add(at + 1 >= ops.size() ? 0 : rows[at] == rows[at + 1] ? 2 : alike(at, at + 1) ? 1 : 0);
  for (const int64_t step : {-1, 1}) {
    const int64_t beside = static_cast<int64_t>(at) + step;
    const bool there = beside >= 0 && beside < static_cast<int64_t>(ops.size());
    const OpFigures& f = figures[there ? static_cast<size_t>(beside) : at];
    add(there ? ops[static_cast<size_t>(beside)].kind() : -1.0);
    add(there ? std::log(f.roofline_us) : -1);
    add(there ? f.channels_out * f.groups : -1);
    add(there ? std::log1p(f.output_places) : -1);
  }
  CHECK(out.size() - before == kNeighbourColumns, "every column of an op's neighbours");
}

Context::Context(std::span<const LaneOp> ops, std::span<const OpFigures> figures, std::span<const LaneGuess> guesses)
    : ops_(ops), figures_(figures), guesses_(guesses), gpu_(1), host_(1) {
  for (size_t i = 0; i < ops.size(); ++i) {
    gpu_.push_back(gpu_.back() + ops[i].gpu_us + guesses[i].untraced_us);
    host_.push_back(host_.back() + guesses[i].host_us);
  }
}

double Context::balance(size_t first, size_t last) const {
  return std::log((gpu_[last] - gpu_[first] + 1) / (host_[last] - host_[first] + 1));
}

void Context::add_columns(size_t at, std::vector<float>& out) const {
  const size_t before = out.size();
  const auto add = [&](double value) { out.push_back(static_cast<float>(value)); };
  const auto count = static_cast<int64_t>(ops_.size());
  const auto inside = [&](int64_t step) {
    const int64_t place = static_cast<int64_t>(at) + step;
    return place >= 0 && place < count;
  };
  for (const int64_t step : kKindsAround) add(inside(step) ? ops_[at + static_cast<size_t>(step)].kind() : -1.0);
  for (const int64_t step : kTimesAround)
    add(inside(step) ? ln_above_a_tenth(ops_[at + static_cast<size_t>(step)].gpu_us) : 0.0);
  const LaneGuess& guess = guesses_[at];
  add(std::log1p(guess.gap_us));
  add(signed_ln(guess.lead_us));
  add(at > 0 ? signed_ln(guesses_[at - 1].lead_us) : 0);
  add(std::log1p(guess.host_us));
  add(std::log1p(guess.waiting_us));
  add(balance(at > kBehind ? at - kBehind : 0, at + 1));
  add(balance(at, std::min(at + kAhead, ops_.size())));
  add(std::log1p(guess.untraced_us));
  add(std::log1p(guess.skipped_us));
  add(guess.skipped);
  const bool any = guess.longest >= 0;
  const OpFigures longest = any ? figures_[static_cast<size_t>(guess.longest)] : OpFigures();
  add(any ? ops_[static_cast<size_t>(guess.longest)].kind() : -1.0);
  for (const double extent : {longest.m, longest.n, longest.k}) add(ln_above_a_tenth(extent));
  add(static_cast<double>(at) / static_cast<double>(count));
  CHECK(out.size() - before == kContextColumns, "every column of an op's context");
}

}  // namespace forerun::learn
