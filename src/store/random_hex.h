// Names and secrets that nobody can guess: random bytes of the kernel, as hexadecimal text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forerun::store {

std::string random_hex(size_t bytes);

// Whether the text is made of so many lower-case hexadecimal digits and nothing else.
bool is_hex(std::string_view text, size_t digits);

}  // namespace forerun::store
