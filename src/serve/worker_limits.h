// What bounds a worker, set by itself before it reads a question.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forerun::serve {

// Memory, no files written, no core file, and its end with that of the server.
void limit_worker(int64_t memory_bytes);

// From here on nothing can be opened but what is in or below these, for reading. False where the kernel does not do it.
bool open_only(const std::vector<std::string>& readable);

}  // namespace forerun::serve
