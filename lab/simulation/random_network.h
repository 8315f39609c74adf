// Networks that nobody designed: layers and blocks put together at random, so that predictors see ops in many sizes and
// orders. Images pass through stages of drawn blocks (plain, residual, grouped, inverted, dense, branches, cells of a random
// wiring, as searches for architectures try them); tokens through drawn mixers (attention, LSTM, gated layers).
//
// They are no model of a family on purpose: a network here has at most a block in common with one.
#pragma once

#include "base/result.h"
#include "lab/simulation/drawing.h"
#include "zoo/zoo.h"

namespace forerun::simulation {

Result<zoo::Model> random_image_network(int64_t batch, int64_t size, Drawing& drawing);
Result<zoo::Model> random_token_network(int64_t batch, Drawing& drawing);

}  // namespace forerun::simulation
