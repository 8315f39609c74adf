// What a verb printed with --json, as results to keep.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace forerun::serve {

// Objects, one a line or one over several; each with the `schema` that every answer begins with. `where` names the text in Errors.
Result<std::vector<store::NewResult>> kept_answers(const std::string& text, const std::string& where);

}  // namespace forerun::serve
