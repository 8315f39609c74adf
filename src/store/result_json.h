// Kept results as JSON: what `forerun store --json` prints and the server answers.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.h"
#include "store/store.h"

namespace forerun::store {

// The fields of a row, into an object that was begun.
void write_fields(JsonWriter& json, const ResultRow& row);
void write_fields(JsonWriter& json, const Measurement& measurement);

std::string page_json(const ResultPage& page);
// With its question, answer and measurements.
std::string result_json(const KeptResult& result, const std::vector<Measurement>& measurements);

}  // namespace forerun::store
