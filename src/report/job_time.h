// What a whole job takes, for people and programs.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "predict/job_time.h"

namespace forerun {

std::string duration_text(double hours);  // "42 s", "55 min", "31.4 h", "12.4 days"
std::string money_text(double amount);    // "2.50", "12,345"; small ones with as many digits as say something
std::string energy_text(double kwh);      // "412 Wh", "18.3 kWh", "1.2 MWh"

// "Job  100,000 iterations   55 min" and what it is spent on.
std::string job_text(const JobTime& job);
// "computation 20 min (36 %), memory access 30 min (55 %), ...": parts that are none are left out.
std::string parts_text(const JobTime& job);

void write_json(JsonWriter& json, const TimeParts& parts);  // in milliseconds
void write_json(JsonWriter& json, const JobTime& job);

}  // namespace forerun
