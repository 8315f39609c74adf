// Parses a run of events, text such as `{...}, {...}`, with simdjson, one block at a time.
//
// On-demand parsing touches what is asked for and nothing else, so a block costs little more than finding its structure.
// simdjson stays inside the .cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "ingest/kineto/raw_event.h"

namespace forerun {

class EventDecoder {
 public:
  // Bytes that must be there, and may be overwritten for the time of a call, before and behind the text.
  static constexpr size_t kBefore = 1;
  static constexpr size_t kPadding = 128;

  struct Outcome {
    std::optional<size_t> failed;  // where the event begins that did not parse; those before it were handed over
    std::optional<size_t> ended;   // behind the "]" that closes the list of events, where the text has it
    const char* complaint = "";
  };
  using Sink = std::function<void(const RawEvent&)>;

  EventDecoder();
  EventDecoder(EventDecoder&&) noexcept;
  EventDecoder& operator=(EventDecoder&&) noexcept;
  ~EventDecoder();

  Outcome decode(char* text, size_t size, const Sink& sink);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace forerun
