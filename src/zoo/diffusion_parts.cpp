#include "zoo/diffusion_parts.h"

#include <cmath>

#include "zoo/attention_layers.h"

namespace forerun::zoo {

TensorId timestep_input(ForwardBuilder& b, int64_t batch) { return b.input("timesteps", {batch}, DType::int64); }

TensorId timestep_waves(ForwardBuilder& b, TensorId steps, const WaveOptions& options) {
  constexpr double kLongestPeriod = 10000;
  TensorId frequencies = b.create("aten.arange.start", {options.count}, DType::float32);
  frequencies = b.mul_scalar(frequencies, -std::log(kLongestPeriod));
  frequencies = b.unary("aten.div.Tensor", frequencies, {{"other", options.count - options.shift}});
  frequencies = b.unary("aten.exp.default", frequencies);
  TensorId angles = b.to_dtype(b.unsqueeze(steps, 1), DType::float32);
  angles = b.mul(angles, b.unsqueeze(frequencies, 0));
  if (options.scaled) angles = b.mul_scalar(angles, 1);
  const TensorId first = b.unary(options.cosines_first ? "aten.cos.default" : "aten.sin.default", angles);
  const TensorId second = b.unary(options.cosines_first ? "aten.sin.default" : "aten.cos.default", angles);
  TensorId waves = b.cat({first, second}, -1);
  if (options.swapped) {
    const TensorId tail = b.slice(waves, 1, options.count, kToEnd);
    waves = b.cat({tail, b.slice(waves, 1, 0, options.count)}, -1);
  }
  return waves;
}

}  // namespace forerun::zoo
