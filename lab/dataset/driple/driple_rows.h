// Rows of studies as lines of JSON, as they are kept beside the weights (`studies.jsonl`).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/dataset/driple/driple_study.h"

namespace forerun::learn {

inline constexpr const char* kStudiesFile = "studies.jsonl";

std::string to_json_line(const ResourceStudyRow& row);
// Of a weights folder; nothing where there is no such file.
Result<std::vector<ResourceStudyRow>> read_study_rows(const std::string& folder);
// Rows of the same study, setting and name are replaced, the others stay.
Status write_study_rows(const std::string& folder, const std::vector<ResourceStudyRow>& rows);

}  // namespace forerun::learn
