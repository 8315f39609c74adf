// Bytes as text and back: Base64 of RFC 4648, with its padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace forerun {

std::string to_base64(std::string_view bytes);
// Nothing where the text is none.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace forerun
