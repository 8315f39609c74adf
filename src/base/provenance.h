// Where a figure that is kept comes from: the day, the machine, and a fingerprint of the files behind it, by which a figure is
// known to be stale once those have changed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace forerun {

std::string today_utc();  // "2026-11-16"

// "Neoverse-N1, 2 cores"; the architecture where the kernel does not name the processor.
std::string this_machine();

// 16 hexadecimal digits over the names and bytes of these files and of all files below these folders. It tells changes, not
// forgeries. The same wherever the files lie: names count from the given path, its last part included. An Error where one cannot
// be read.
Result<std::string> fingerprint(const std::vector<std::filesystem::path>& paths);

// The same over a text.
std::string text_fingerprint(std::string_view text);

// Of the running program, and of what it reads of the data folder for any question: answers of programs and folders that
// differ in these may differ too.
Result<std::string> program_fingerprint();
Result<std::string> data_fingerprint();

}  // namespace forerun
