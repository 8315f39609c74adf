// What a training loop does to gradients and weights around the optimizer's own step: torch.amp.GradScaler, clip_grad_norm_ and
// a moving average of the weights (torch.optim.swa_utils.AveragedModel), op by op.
#pragma once

#include "derive/optimizer.h"
#include "derive/tracer.h"

namespace forerun::derive {

// GradScaler: scales the loss, divides the gradients again, and skips steps whose gradients are not finite.
class LossScaler {
 public:
  // Makes its state, as a root.
  explicit LossScaler(Tracer& tracer);

  Value scale(const Value& loss);
  // Divides the gradients and looks for infinities. A fused optimizer divides by itself: then the gradients are only looked at,
  // unless somebody (clip_grad_norm_) needs them divided.
  void unscale(const Values& gradients, bool divide);
  // The host waits for what was found, unless the optimizer is fused and looks itself.
  void wait_for_finding(bool fused);
  void update();

 private:
  Tracer& t_;
  Value scale_, growth_;
  Value found_;
};

void clip_gradients(Tracer& t, const Values& gradients);

// A copy of every weight and buffer, made before the iteration.
class MovingAverage {
 public:
  MovingAverage(Tracer& t, const Values& weights, const Values& buffers);
  void update();

 private:
  Tracer& t_;
  Values weights_, buffers_, averages_, copies_;
  Value count_;
};

}  // namespace forerun::derive
