// A ZooCheck as text and JSON.
#pragma once

#include <string>

#include "api/zoo_check.h"

namespace forerun {

std::string to_text(const ZooCheck& check);
std::string to_json(const FamilyCheck& check);  // one line

}  // namespace forerun
