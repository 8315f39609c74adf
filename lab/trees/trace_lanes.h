// TraceLanes: a first guess of the gaps of a trace as the authors of ETS take them, and what trees learn the rest from.
//
// Gaps have three causes. The host may be behind: it issues ops one after the other, each taking a typical time of its
// kind and that of the op that follows. It may wait for the GPU: behind some kinds (batch normalization in forward) a gap
// stays however long the ops are, so there the host issues nothing ahead. It waits where backward begins, too: it walks the
// whole graph before the first op, so that gap grows with the number of ops. And the GPU may be at work that the trace does
// not show: the backward ops of linear layers and concatenations are missing, and their time stands as gap behind the op
// before. Backward ops are paired with their forward ops (the same kind, in reverse order); what is skipped in between was
// not traced, and takes a typical multiple of its forward time. Where linear layers are told apart (linear_layers.h), a
// bias takes nothing in backward, and neither does another op of the layer whose backward the op before is.
// Left out: differences in speed between the hosts that traces were taken on; they cannot be known from the trace's ops.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "base/result.h"
#include "lab/trees/op_figures.h"

namespace forerun::learn {

// An op as the lanes see it.
struct LaneOp {
  uint32_t name = 0;  // index in a vocabulary
  bool forward = true;
  uint8_t type = 0;      // 0 float32, 1 a 16-bit type, 2 any other
  bool product = false;  // a linear layer: its backward is two such products
  uint64_t layer = 0;    // a linear layer's figures (layer_of), 0 where they are not told apart
  bool bias = false;     // of a linear layer: no product, whatever its figures
  double gpu_us = 0;
  double gap_us = 0;  // measured; for learning alone

  [[nodiscard]] uint32_t kind() const { return 2 * name + (forward ? 0 : 1); }
};

struct LaneGuess {
  double gap_us = 0;
  double lead_us = 0;      // of the GPU over the host behind the op; negative: the host is behind
  double host_us = 0;      // that the host takes for the op
  double waiting_us = 0;   // gap that stays however long the ops are
  double skipped_us = 0;   // forward time of ops whose backward was not traced, behind this op
  double untraced_us = 0;  // that those are expected to take
  uint32_t skipped = 0;    // their number
  int64_t longest = -1;    // place of the longest of them; -1: there are none
};

class TraceLanes {
 public:
  // Learns typical times from traces; `gpu_us` and `gap_us` of the ops are what was measured.
  void fit(std::span<const std::vector<LaneOp>> traces);
  [[nodiscard]] std::vector<LaneGuess> guess(std::span<const LaneOp> ops) const;

  [[nodiscard]] nlohmann::json to_json() const;
  static Result<TraceLanes> from_json(const nlohmann::json& json);

 private:
  struct Typical {
    double host_us = 0;
    double waiting_us = 0;
  };
  [[nodiscard]] Typical typical(uint32_t kind, uint32_t next) const;
  [[nodiscard]] double untraced_ratio(const LaneOp& op) const;
  void fit_typical(std::span<const std::vector<LaneOp>> traces);
  void fit_untraced(std::span<const std::vector<LaneOp>> traces);
  void fit_turn(std::span<const std::vector<LaneOp>> traces);

  std::map<uint64_t, Typical> typical_;  // by kind and next kind; by kind alone
  std::map<uint32_t, double> untraced_;  // by name and type
  double turn_us_ = 0;     // gap where backward begins, without what each op of the trace adds; 0: not known
  double turn_op_us_ = 0;  // that each adds
};

// A number that linear layers with the same figures share; never 0.
uint64_t layer_of(const OpFigures& figures);

// For each backward op the forward ops (their places) that were skipped between its partner and that of the next.
std::vector<std::vector<uint32_t>> skipped_ops(std::span<const LaneOp> ops);

}  // namespace forerun::learn
