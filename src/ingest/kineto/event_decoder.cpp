#include "ingest/kineto/event_decoder.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

#include "base/object_scan.h"
#include "ingest/kineto/event_text.h"
#include "ingest/kineto/numbers.h"

namespace forerun {

struct EventDecoder::Parser {
  simdjson::ondemand::parser json;
};

namespace {

using simdjson::error_code;
using Value = simdjson::ondemand::value;

constexpr size_t kLongestKey = 40;

// A key's text: up to its closing quote. Keys that matter have no escapes.
std::string_view key_of(simdjson::ondemand::raw_json_string raw) {
  const char* const begin = raw.raw();
  size_t length = 0;
  while (length < kLongestKey && begin[length] != '"') ++length;
  return {begin, length};
}

// A scalar as it stands in the file, without the blanks behind it.
std::string_view token_of(Value& value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
  return token;
}

std::string_view string_of(Value& value) {
  const std::string_view token = token_of(value);
  if (token.size() < 2 || token.front() != '"' || token.back() != '"') return {};
  return token.substr(1, token.size() - 2);
}

// Of a length that is known when this is compiled: no call.
template <size_t kSize>
bool same(std::string_view key, const char (&name)[kSize]) {
  return key.size() == kSize - 1 && std::memcmp(key.data(), name, kSize - 1) == 0;
}

int64_t number_of(Value& value, int64_t otherwise = -1) { return integer_of(token_of(value)).value_or(otherwise); }

// A list as it stands in the file; a scalar as its text.
error_code text_of(Value& value, std::string_view& out) {
  const std::string_view token = token_of(value);
  if (token.empty() || token.front() != '[') {
    out = string_of(value);
    return simdjson::SUCCESS;
  }
  simdjson::ondemand::array list;
  if (const error_code code = value.get_array().get(list)) return code;
  if (const error_code code = list.raw_json().get(out)) return code;
  while (!out.empty() && out.back() != ']') out.remove_suffix(1);
  return simdjson::SUCCESS;
}

error_code extents_of(Value& value, std::array<uint32_t, 3>& out) {
  simdjson::ondemand::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) return simdjson::SUCCESS;  // not a list: no extents
  size_t i = 0;
  for (auto element : list) {
    Value item;
    if (const error_code code = element.get(item)) return code;
    if (i < out.size()) out[i] = static_cast<uint32_t>(std::clamp<int64_t>(number_of(item, 0), 0, UINT32_MAX));
    ++i;
  }
  return simdjson::SUCCESS;
}

RawId id_of(Value& value) {
  RawId id;
  const std::string_view token = token_of(value);
  if (const auto number = integer_of(token)) {
    id.number = *number;
    return id;
  }
  id.text = token.size() >= 2 && token.front() == '"' ? token.substr(1, token.size() - 2) : token;
  constexpr std::string_view kStream = "stream ";
  if (id.text.substr(0, kStream.size()) == kStream) {
    if (const auto number = integer_of(id.text.substr(kStream.size()))) return {*number, {}};
  }
  return id;
}

error_code collective_argument(std::string_view key, Value& value, RawEvent& event) {
  const auto is = [&](const auto& name) { return same(key, name); };
  const bool was = event.has_collective;
  event.has_collective = true;
  if (is("Collective name"))
    event.collective_name = string_of(value);
  else if (is("dtype"))
    event.dtype = string_of(value);
  else if (is("In msg nelems"))
    event.in_elements = number_of(value);
  else if (is("Out msg nelems"))
    event.out_elements = number_of(value);
  else if (is("Group size"))
    event.group_size = number_of(value);
  else if (is("Process Group Name"))
    event.group = string_of(value);
  else if (is("Process Group ID")) {
    if (event.group.empty()) {
      event.group = token_of(value);
      if (event.group.size() >= 2 && event.group.front() == '"')
        event.group = event.group.substr(1, event.group.size() - 2);
    }
  } else if (is("Process Group Description"))
    event.group_description = string_of(value);
  else if (is("Process Group Ranks"))
    return text_of(value, event.ranks);
  else if (is("In split size"))
    return text_of(value, event.in_splits);
  else if (is("Out split size"))
    return text_of(value, event.out_splits);
  else if (is("Global rank start"))
    event.rank_start = number_of(value);
  else if (is("Global rank stride"))
    event.rank_stride = number_of(value);
  else
    event.has_collective = was;
  return simdjson::SUCCESS;
}

error_code detail_argument(std::string_view key, Value& value, RawEvent& event) {
  const auto is = [&](const auto& name) { return same(key, name); };
  switch (key.front()) {
    case 'b':
      if (is("bytes")) event.bytes = number_of(value);
      if (is("block")) return extents_of(value, event.block);
      break;
    case 'g':
      if (is("grid")) {
        event.has_grid = true;
        return extents_of(value, event.grid);
      }
      break;
    case 'r':
      if (is("registers per thread")) event.registers = number_of(value, 0);
      break;
    case 's':
      if (is("shared memory")) event.shared_memory = number_of(value, 0);
      if (is("size") && event.bytes < 0) event.bytes = number_of(value);
      if (is("stack")) event.stack = string_of(value);
      break;
    case 'w':
      if (is("wait_on_stream")) event.wait_on_stream = number_of(value);
      if (is("wait_on_cuda_event_record_corr_id")) event.record_correlation = number_of(value);
      if (is("wait_on_cuda_event_id")) event.wait_event = number_of(value);
      break;
    case 'I':
      if (is("Input Dims") || is("Input dims")) return text_of(value, event.dims);
      if (is("Input type")) return text_of(value, event.types);
      if (is("Input Strides")) return text_of(value, event.strides);
      return collective_argument(key, value, event);
    case 'M':
      if (is("Module Hierarchy")) event.module = string_of(value);
      break;
    case 'C':
      if (is("Concrete Inputs")) return text_of(value, event.values);
      if (is("Call stack")) event.stack = string_of(value);
      return collective_argument(key, value, event);
    default: return collective_argument(key, value, event);
  }
  return simdjson::SUCCESS;
}

// The keys most events have first.
error_code argument(std::string_view key, Value& value, RawEvent& event) {
  const auto is = [&](const auto& name) { return same(key, name); };
  if (key.empty()) return simdjson::SUCCESS;
  switch (key.front()) {
    case 'E':
      if (is("External id")) event.external_id = number_of(value);
      return simdjson::SUCCESS;
    case 'e':
      if (is("external id")) event.external_id = number_of(value);
      return simdjson::SUCCESS;
    case 'c':
      if (is("correlation")) event.correlation = number_of(value);
      if (is("cuda_sync_kind")) event.sync_kind = string_of(value);
      return simdjson::SUCCESS;
    case 'S':
      if (is("Sequence number")) event.sequence = number_of(value);
      return simdjson::SUCCESS;
    case 'F':
      if (is("Fwd thread id")) event.forward_thread = number_of(value);
      return simdjson::SUCCESS;
    case 'n':
      if (is("name")) event.label = string_of(value);
      return simdjson::SUCCESS;
    case 'P':
      if (is("Python id"))
        event.python_id = number_of(value);
      else
        return collective_argument(key, value, event);
      return simdjson::SUCCESS;
    default: break;
  }
  if (is("stream"))
    event.stream = integer_of(token_of(value));
  else if (is("device"))
    event.device = integer_of(token_of(value));
  else
    return detail_argument(key, value, event);
  return simdjson::SUCCESS;
}

error_code arguments(Value& value, RawEvent& event) {
  simdjson::ondemand::json_type type{};
  if (const error_code code = value.type().get(type)) return code;
  if (type != simdjson::ondemand::json_type::object) return simdjson::SUCCESS;
  simdjson::ondemand::object object;
  if (const error_code code = value.get_object().get(object)) return code;
  for (auto result : object) {
    simdjson::ondemand::field field;
    if (const error_code code = std::move(result).get(field)) return code;
    if (const error_code code = argument(key_of(field.key()), field.value(), event)) return code;
  }
  return simdjson::SUCCESS;
}

error_code time_of(Value& value, std::optional<int64_t>& out, bool& bad) {
  out = nanoseconds_of(token_of(value));
  bad = bad || !out;
  return simdjson::SUCCESS;
}

error_code member(std::string_view key, Value& value, RawEvent& event) {
  if (same(key, "ph")) {
    const std::string_view phase = string_of(value);
    event.phase = phase.size() == 1 ? phase.front() : '?';
  } else if (same(key, "cat")) {
    event.category = string_of(value);
  } else if (same(key, "name")) {
    event.name = string_of(value);
  } else if (same(key, "pid")) {
    event.process = id_of(value);
  } else if (same(key, "tid")) {
    event.thread = id_of(value);
  } else if (same(key, "ts")) {
    return time_of(value, event.start, event.bad_time);
  } else if (same(key, "dur")) {
    return time_of(value, event.duration, event.bad_time);
  } else if (same(key, "args")) {
    return arguments(value, event);
  }
  return simdjson::SUCCESS;
}

// Flow arrows, instants and counters are counted and passed over.
bool matters(char phase) { return phase == 'X' || phase == 'M' || phase == 0; }

error_code decode_event(Value& value, RawEvent& event) {
  simdjson::ondemand::object object;
  if (const error_code code = value.get_object().get(object)) return code;
  for (auto result : object) {
    simdjson::ondemand::field field;
    if (const error_code code = std::move(result).get(field)) return code;
    if (const error_code code = member(key_of(field.key()), field.value(), event)) return code;
    if (!matters(event.phase)) break;
  }
  return simdjson::SUCCESS;
}

}  // namespace

EventDecoder::EventDecoder() : parser_(std::make_unique<Parser>()) {}
EventDecoder::EventDecoder(EventDecoder&&) noexcept = default;
EventDecoder& EventDecoder::operator=(EventDecoder&&) noexcept = default;
EventDecoder::~EventDecoder() = default;

namespace {

// Walks the events of `[text]`.
class Walk {
 public:
  Walk(char* text, size_t size, const EventDecoder::Sink& sink) : text_(text), size_(size), sink_(sink) {}

  EventDecoder::Outcome run(simdjson::ondemand::parser& parser) {
    simdjson::ondemand::document document;
    const simdjson::padded_string_view view(text_ - 1, size_ + 2, size_ + 1 + EventDecoder::kPadding);
    if (const error_code code = parser.iterate(view).get(document)) return failed(code);
    simdjson::ondemand::array events;
    if (const error_code code = document.get_array().get(events)) return failed(code);
    for (auto result : events) {
      Value value;
      if (const error_code code = std::move(result).get(value)) return failed(code);
      if (!hand_over(std::min(static_cast<size_t>(value.raw_json_token().data() - text_), size_))) return outcome_;
      pending_ = true;
      event_ = RawEvent();
      if (const error_code code = decode_event(value, event_)) return failed(code);
    }
    size_t end = size_;
    const char* location = nullptr;
    if (document.current_location().get(location) == simdjson::SUCCESS && location < text_ + size_ + 1) {
      // Behind the last event comes the "]", and `location` is at what follows it.
      end = static_cast<size_t>(location - text_);
      while (end > 0 && text_[end - 1] != ']') --end;
      outcome_.ended = end;
    }
    if (!hand_over(end)) outcome_.ended.reset();
    return outcome_;
  }

 private:
  EventDecoder::Outcome failed(error_code code) {
    outcome_.failed = at_;
    outcome_.complaint = simdjson::error_message(code);
    return outcome_;
  }

  // Gives the event decoded last to the sink, now that it is known where the next one begins. On-demand parsing passes
  // over what nobody asks for by counting brackets: an event whose brackets do not match may have swallowed others.
  bool hand_over(size_t next) {
    const std::string_view upto(text_, next);
    if (pending_ && next_event(upto, at_ + 1) < next && !is_one_object(upto.substr(at_))) {
      outcome_.failed = at_;
      outcome_.complaint = "its brackets do not match";
      return false;
    }
    if (pending_) sink_(event_);
    pending_ = false;
    at_ = next;
    return true;
  }

  char* text_;
  size_t size_;
  const EventDecoder::Sink& sink_;
  EventDecoder::Outcome outcome_;
  RawEvent event_;
  bool pending_ = false;
  size_t at_ = 0;  // where the event in hand begins
};

}  // namespace

EventDecoder::Outcome EventDecoder::decode(char* text, size_t size, const Sink& sink) {
  const char before = text[-1];
  char behind[kPadding];
  std::memcpy(behind, text + size, kPadding);
  text[-1] = '[';
  text[size] = ']';
  std::memset(text + size + 1, ' ', kPadding - 1);
  const Outcome outcome = Walk(text, size, sink).run(parser_->json);
  text[-1] = before;
  std::memcpy(text + size, behind, kPadding);
  return outcome;
}

}  // namespace forerun
