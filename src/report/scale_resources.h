// What simulated distributed training does to GPU and network, as text, JSON and a picture.
#pragma once

#include <cstdint>
#include <string>

#include "api/scale_resources.h"
#include "base/json_writer.h"

namespace forerun {

std::string to_text(const ResourceAnswer& answer);
std::string to_json(const ResourceAnswer& answer);  // fields are called as in resources/1 records (docs/records.md)
void write_metrics(JsonWriter& json, const ResourceAnswer& answer);  // the object under "metrics"
std::string to_svg(const ResourceAnswer& answer);

}  // namespace forerun
