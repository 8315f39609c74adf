// The text of a trace where it does not parse: where events begin, and how a broken one is mended.
//
// An event looks to begin at a "{" that follows "}," and is followed by a key that events begin with; that holds however broken
// the strings around it are. Objects within an event may look so too: where the text is JSON its brackets tell (base/object_scan.h),
// looks count where it is none. Profilers write names without escaping them: quotes, backslashes, control characters and
// bytes that are no UTF-8 all occur.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forerun {

constexpr size_t kNowhere = std::string_view::npos;

// Where the first event at or behind `from` looks to begin that follows another one; kNowhere where there is none.
size_t next_event(std::string_view text, size_t from);
// The last one; kNowhere where there is none.
size_t last_event(std::string_view text);

// The text of one event with its strings made valid JSON. A quote closes a string only where what follows can follow a
// string. `trust_escapes`: a backslash before a quote escapes it; otherwise not where the quote could close the string.
std::string repaired(std::string_view event, bool trust_escapes);

// A JSON string's text without its escapes; `broken` is set where an escape is not valid and was kept as it stood.
std::string unescaped(std::string_view text, bool& broken);

}  // namespace forerun
