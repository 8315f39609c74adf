#include "ingest/kineto/file_header.h"

#include <cctype>

#include "ingest/kineto/event_text.h"
#include "ingest/kineto/numbers.h"

namespace forerun {
namespace {

size_t past_blanks(std::string_view text, size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
  return at;
}

// Where the value of a quoted key begins, looking from `from`; kNowhere where there is none.
size_t value_of(std::string_view text, std::string_view quoted_key, size_t from = 0) {
  for (size_t at = text.find(quoted_key, from); at != kNowhere; at = text.find(quoted_key, at + 1)) {
    const size_t colon = past_blanks(text, at + quoted_key.size());
    if (colon < text.size() && text[colon] == ':') return past_blanks(text, colon + 1);
  }
  return kNowhere;
}

std::optional<int64_t> number_at(std::string_view text, size_t at) {
  if (at == kNowhere) return std::nullopt;
  size_t end = at;
  while (end < text.size() && end - at < 32 && std::string_view("0123456789-.+eE\"").find(text[end]) != kNowhere) ++end;
  return integer_of(text.substr(at, end - at));
}

std::string string_at(std::string_view text, size_t at) {
  if (at == kNowhere || at >= text.size() || text[at] != '"') return {};
  const size_t end = text.find('"', at + 1);
  if (end == kNowhere || end - at > 200) return {};
  bool broken = false;
  return unescaped(text.substr(at + 1, end - at - 1), broken);
}

}  // namespace

std::optional<size_t> events_begin(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // a byte order mark
  const size_t first = past_blanks(text, text.substr(0, kMark.size()) == kMark ? kMark.size() : 0);
  if (first < text.size() && text[first] == '[') return first + 1;
  const size_t events = value_of(text, "\"traceEvents\"");
  if (events == kNowhere || events >= text.size() || text[events] != '[') return std::nullopt;
  return events + 1;
}

std::optional<int64_t> take_header(std::string_view part, Trace& trace) {
  const size_t distributed = value_of(part, "\"distributedInfo\"");
  if (distributed != kNowhere) {
    const auto rank = number_at(part, value_of(part, "\"rank\"", distributed));
    const auto world = number_at(part, value_of(part, "\"world_size\"", distributed));
    if (rank) trace.rank = *rank;
    if (world) trace.world_size = *world;
    trace.backend = string_at(part, value_of(part, "\"backend\"", distributed));
    trace.names_process_group = !trace.backend.empty() && trace.world_size != 1;
  }
  const size_t devices = value_of(part, "\"deviceProperties\"");
  if (devices != kNowhere) trace.gpu = string_at(part, value_of(part, "\"name\"", devices));
  return number_at(part, value_of(part, "\"baseTimeNanoseconds\""));
}

int64_t rank_of_name(std::string_view file) {
  const size_t slash = file.rfind('/');
  const std::string_view name = slash == kNowhere ? file : file.substr(slash + 1);
  for (const std::string_view word : {"rank", "worker"}) {
    for (size_t at = name.find(word); at != kNowhere; at = name.find(word, at + 1)) {
      size_t digit = at + word.size();
      if (digit < name.size() && (name[digit] == '-' || name[digit] == '_')) ++digit;
      size_t end = digit;
      while (end < name.size() && end - digit < 9 && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
      if (end > digit) return integer_of(name.substr(digit, end - digit)).value_or(-1);
    }
  }
  return -1;
}

}  // namespace forerun
