// What a user gives where a model is asked for: a name of the zoo, or a file, which is told by its content.
//
// A name of the zoo is one even where a file or folder of that name lies about; "./resnet50" names the file. What is
// there and what looks like a path ("runs/a", "a.json") is never answered with the zoo's names; "Qwen/Qwen9" does not, since
// the zoo has checkpoints of that organisation.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/importers.h"

namespace forerun {

// The kind of the file, which is one that the verb takes or a stream; nothing where the text is a name, known or not.
// An Error where the file is of another kind or not there.
Result<std::optional<FileKind>> model_file(const std::string& model, std::string_view verb);

}  // namespace forerun
