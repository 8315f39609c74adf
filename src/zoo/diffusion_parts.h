// What diffusion models share: the waves that stand for the step of the noising process.
//
// An iteration reads images that noise was added to, the step each of them is at, and the noise; drawing the noise and adding
// it (a few elementwise passes over the images) belongs to the loop and is left out.
#pragma once

#include "graph/forward_builder.h"

namespace forerun::zoo {

// Steps of the images: [batch] int64.
TensorId timestep_input(ForwardBuilder& b, int64_t batch);

struct WaveOptions {
  int64_t count = 128;         // of sines, and of cosines
  int64_t shift = 0;           // frequencies fall to 1 / 10000 after `count - shift` of them
  bool scaled = false;         // multiplied by 1
  bool cosines_first = false;  // as written
  bool swapped = false;        // the halves change places afterwards
};
// Sines and cosines of the steps: [batch, 2 * count], float32.
TensorId timestep_waves(ForwardBuilder& b, TensorId steps, const WaveOptions& options);

}  // namespace forerun::zoo
