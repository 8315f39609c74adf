// Tells a name of the zoo from a file, by the text alone and by what is there.
#pragma once

#include <string>

namespace forerun {

// Whether the text means a file. A name of the zoo never does; "runs/a" and "a.json" do, whether something is there or
// not.
bool names_file(const std::string& model);

}  // namespace forerun
