// Draws models to be simulated: families of the zoo that are trained on (data/h200/split.json, part `train`) with their parameters
// around and beyond the published models, RandWire networks, and random networks (random_network.h). No model of a
// family that predictors are judged on is drawn, but for RandWire, whose networks are random themselves: what is drawn is
// never one that was measured.
//
// Ranges are those of python/forerun/families, which draws what is measured.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/simulation/drawing.h"
#include "zoo/zoo.h"

namespace forerun::simulation {

// What of the sizes is sought: few samples, enough to fill a GPU, or as many as fit.
enum class Load : uint8_t { light, full, largest };

// Names that models are drawn from, each as often as the others: families of the zoo, "random".
const std::vector<std::string>& drawn_families();

// A model of the family, forward pass and input; an Error where what was drawn cannot be built.
Result<zoo::Model> draw_model(const std::string& family, Load load, Drawing& drawing);

}  // namespace forerun::simulation
