#include "ingest/kineto/kineto_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/byte_source.h"
#include "base/json_nesting.h"
#include "base/object_scan.h"
#include "base/ordered_work.h"
#include "ingest/kineto/event_decoder.h"
#include "ingest/kineto/event_text.h"
#include "ingest/kineto/file_header.h"
#include "ingest/kineto/trace_builder.h"

namespace forerun {
namespace {

constexpr size_t kLongestHeader = size_t{1} << 24;  // of what stands before the events
constexpr size_t kLongestTail = size_t{1} << 22;    // of what stands behind them and is looked at
constexpr int64_t kMostBehind = int64_t{1} << 26;   // bytes behind the events
constexpr size_t kKeptOfSkipped = 256;              // of an event too long to hold: enough to see where the next begins
constexpr int64_t kMostSkipped = int64_t{1} << 28;  // bytes without an event that begins
constexpr size_t kMostThreads = 8;                  // reading and adding go one at a time
constexpr size_t kMostInVain = size_t{1} << 26;     // bytes scanned for the end of events that are no JSON

constexpr const char* kGiveATrace = "give a PyTorch profiler trace (prof.export_chrome_trace)";

class TextSource : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}
  Result<size_t> read(char* into, size_t size) override {
    const size_t count = std::min(size, text_.size());
    if (count > 0) std::memcpy(into, text_.data(), count);
    text_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view text_;
};

// Events, one behind the other, within a buffer that has room around them (EventDecoder). They are whole, unless something within
// the last one looks like an event and the text was cut there.
struct EventsText {
  char* text = nullptr;
  size_t size = 0;
  size_t length = 0;     // up to where the next text begins
  int64_t position = 0;  // in the file
  bool last = false;     // the file ends behind them
  [[nodiscard]] std::string_view view() const { return {text, size}; }
  [[nodiscard]] EventsText from(size_t begin) const {
    return {text + begin, size - begin, length - begin, position + static_cast<int64_t>(begin), last};
  }
};

// An event that goes on behind the text it began in.
struct OpenEvent {
  ObjectScan scan;
  std::string text;  // so far
  int64_t position = 0;
  bool dropped = false;  // it is longer than can be held
};

constexpr bool separates(char c) { return static_cast<unsigned char>(c) <= ' ' || c == ','; }

// A block of the file that a thread has in its hands.
struct Block {
  std::vector<char> buffer;
  size_t size = 0;       // of the whole events
  size_t length = 0;     // up to where the next block begins
  int64_t position = 0;  // in the file
  EventDecoder decoder;
  TraceBuilder events;
  int64_t read = 0;    // events of any phase
  bool plain = false;  // all of it was understood as it is: `events` has it

  [[nodiscard]] EventsText text() { return {buffer.data() + EventDecoder::kBefore, size, length, position, false}; }
};

class KinetoReader {
 public:
  KinetoReader(std::unique_ptr<ByteSource> source, std::string name, const KinetoOptions& options)
      : source_(std::move(source)), options_(options) {
    counts().json_bytes = 0;
    builder_.trace().file = std::move(name);
    sink_ = [this](const RawEvent& event) { take(event); };
  }

  Result<Trace> read() {
    auto trace = read_whole();
    if (failed_ && failed_->is_unfinished()) return *failed_;
    return trace;
  }

 private:
  Result<Trace> read_whole();
  TraceCounts& counts() { return builder_.trace().counts; }
  char* text() { return buffer_.data() + EventDecoder::kBefore + begin_; }
  [[nodiscard]] size_t held() const { return end_ - begin_; }
  std::string_view view() { return {text(), held()}; }
  void consume(size_t bytes) {
    begin_ += bytes;
    position_ += static_cast<int64_t>(bytes);
  }

  void fill(size_t wanted);  // until that many bytes are held or the file ends
  Status find_events();
  Status read_events();
  // The steps of OrderedWork, one block a slot.
  bool take_block(Block& block, OrderedWork& turns);
  void cut_block(Block& block, size_t cut);
  static void decode_apart(Block& block);
  void add_block(Block& block);
  // The bytes of a text one event at a time; where the file's tail begins, kNowhere where the events go on.
  size_t read_text(const EventsText& events);
  size_t take_apart(const EventsText& events, size_t from);
  struct Chunk {
    size_t until = 0;        // where the next one begins
    size_t tail = kNowhere;  // or the file's tail
  };
  Chunk take_chunk(const EventsText& events, size_t from, size_t until);
  std::optional<size_t> take_nesting(const EventsText& events, size_t begin, size_t until);
  void take_one(std::string_view event);
  size_t go_on(std::string_view text);
  void take_open_by_looks();
  void lose_open(std::string_view why);
  void consume_separators();
  void mend(std::string_view event);
  Status skip_overlong();
  void put_back(std::string_view text);
  void read_tail();
  Error error(const std::string& what, const char* remedy) { return {what, builder_.trace().file, remedy}; }
  Error no_events();
  Error cut_short();
  void take(const RawEvent& event);
  void problem(std::string_view what);

  std::unique_ptr<ByteSource> source_;
  const KinetoOptions& options_;
  // What is read, by whoever takes the next block.
  std::vector<char> buffer_;  // one byte, what is held from begin_ to end_, padding
  size_t begin_ = 0, end_ = 0;
  int64_t position_ = 0;         // of begin_ in the file
  bool drained_ = false;         // the file is read to its end
  std::optional<Error> failed_;  // why the file could not be read to its end
  Status overlong_;              // why no event could be found any more
  // What is made of it, by whoever adds a block.
  TraceBuilder builder_;
  EventDecoder decoder_;
  EventDecoder::Sink sink_;
  std::vector<char> mended_;
  int64_t in_hand_ = 0;              // where in the file what is being added begins
  std::atomic<bool> ended_ = false;  // the list of events is
  std::string behind_;               // what was read and stands behind it
  bool mending_ = false;             // what comes through take() was mended
  std::optional<OpenEvent> open_;
  size_t in_vain_ = 0;  // bytes scanned for the end of an event that has none
  // Of the file as a whole.
  bool list_ = false;     // it is a list, not an object with "traceEvents"
  bool whole_ = false;    // its last bracket was found
  bool goes_on_ = false;  // and something begins behind it
  int64_t base_ = 0;
};

void KinetoReader::problem(std::string_view what) {
  if (!counts().first_problem.empty()) return;
  counts().first_problem = fmt::format("event {} (near byte {}): {}", counts().read + counts().skipped, in_hand_, what);
}

void KinetoReader::fill(size_t wanted) {
  if (begin_ > 0) {
    if (held() > 0) std::memmove(buffer_.data() + EventDecoder::kBefore, text(), held());
    end_ -= begin_;
    begin_ = 0;
  }
  buffer_.resize(std::max(buffer_.size(), wanted + EventDecoder::kBefore + EventDecoder::kPadding));
  const int64_t before = counts().json_bytes;
  while (!drained_ && end_ < wanted) {
    const auto count = source_->read(buffer_.data() + EventDecoder::kBefore + end_, wanted - end_);
    if (!count) {
      drained_ = true;
      failed_ = count.error();
      break;
    }
    drained_ = *count == 0;
    end_ += *count;
    counts().json_bytes += static_cast<int64_t>(*count);
  }
  if (options_.work == nullptr) return;
  if (const Status status = options_.work->advance(counts().json_bytes - before); !status.ok()) {
    drained_ = true;
    failed_ = status.error();
  }
}

Error KinetoReader::no_events() {
  if (failed_ && counts().json_bytes == 0) return *failed_;
  if (counts().json_bytes == 0) return error("the file is empty", "record the trace again");
  JsonNesting nesting;
  nesting.read(view());
  const size_t first = view().find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const bool json = first != kNowhere && (view()[first] == '{' || view()[first] == '[');
  return drained_ && json && !nesting.closed() ? cut_short() : error("has no \"traceEvents\"", kGiveATrace);
}

Error KinetoReader::cut_short() {
  constexpr const char* kRemedy = "copy or record it again; `forerun trace --partial` reads what is there";
  const std::string events = fmt::format("after {} whole events", counts().read);
  if (failed_) return {fmt::format("{}, {}", failed_->what, events), failed_->where, kRemedy};
  return error(fmt::format("the file is truncated: its JSON ends at byte {}, {}, before its last bracket",
                           counts().json_bytes, events),
               kRemedy);
}

// Reads until the events begin, and takes in what stands before them.
Status KinetoReader::find_events() {
  for (size_t wanted = options_.block_bytes;; wanted *= 2) {
    fill(wanted);
    if (const auto begin = events_begin(view())) {
      const std::string_view before = view().substr(0, *begin);
      list_ = before.find('{') == kNowhere;
      base_ = take_header(before, builder_.trace()).value_or(0);
      consume(*begin);
      return {};
    }
    if (drained_ || wanted >= kLongestHeader) return no_events();
  }
}

void KinetoReader::take(const RawEvent& event) {
  switch (builder_.add(event)) {
    case TraceBuilder::Taken::as_it_is: counts().repaired += mending_ ? 1 : 0; break;
    case TraceBuilder::Taken::repaired:
      problem(builder_.reason());
      ++counts().repaired;
      break;
    case TraceBuilder::Taken::skipped:
      problem(builder_.reason());
      ++counts().skipped;
      return;
  }
  ++counts().read;
}

size_t KinetoReader::read_text(const EventsText& events) {
  in_hand_ = events.position;
  const auto outcome = decoder_.decode(events.text, events.size, sink_);
  if (outcome.ended) return *outcome.ended;
  return outcome.failed ? take_apart(events, *outcome.failed) : kNowhere;
}

// What stands from `from` on event by event, because it does not parse together.
size_t KinetoReader::take_apart(const EventsText& events, size_t from) {
  while (from < events.size) {
    const size_t next = next_event(events.view(), from + 1);
    const Chunk chunk = take_chunk(events, from, next == kNowhere ? events.size : next);
    if (chunk.tail != kNowhere) return chunk.tail;
    from = chunk.until;
  }
  return kNowhere;
}

// Where the list of events ends within a text whose last event may be broken: behind "} ]" that a key, the end of the
// object or nothing follows.
size_t end_of_events(std::string_view text) {
  const auto skip = [&](size_t at) {
    while (at < text.size() && static_cast<unsigned char>(text[at]) <= ' ') ++at;
    return at;
  };
  if (const size_t first = skip(0); first < text.size() && text[first] == ']') return first + 1;
  for (size_t brace = text.find('}'); brace != kNowhere; brace = text.find('}', brace + 1)) {
    const size_t close = skip(brace + 1);
    if (close >= text.size() || text[close] != ']') continue;
    const size_t behind = skip(close + 1);
    if (behind >= text.size() || text[behind] == '}') return close + 1;
    if (text[behind] != ',') continue;
    const size_t key = skip(behind + 1);
    if (key < text.size() && text[key] == '"') return close + 1;
  }
  return kNowhere;
}

// What looks like one event.
KinetoReader::Chunk KinetoReader::take_chunk(const EventsText& events, size_t from, size_t until) {
  const std::string_view all = events.view();
  Chunk chunk{until, kNowhere};
  size_t end = until;
  if (until == events.size && events.last) {
    const size_t close = end_of_events(all.substr(from, until - from));
    if (close != kNowhere) {
      chunk.tail = from + close;
      end = chunk.tail - 1;
    }
  }
  while (end > from && separates(all[end - 1])) --end;
  while (from < end && separates(all[from])) ++from;
  if (from == end) return chunk;
  const auto outcome = decoder_.decode(events.text + from, end - from, sink_);
  if (outcome.ended) return {until, from + *outcome.ended};
  if (!outcome.failed) return chunk;
  if (const auto behind = take_nesting(events, from + *outcome.failed, end)) return {*behind, kNowhere};
  problem(outcome.complaint);
  mend(all.substr(from + *outcome.failed, end - from - *outcome.failed));
  return chunk;
}

// Takes the event at `begin` where it does not end before `until`, because something within it looks like an event; returns where
// it ends, and nothing where its brackets do not tell.
std::optional<size_t> KinetoReader::take_nesting(const EventsText& events, size_t begin, size_t until) {
  if (in_vain_ > kMostInVain) return std::nullopt;
  OpenEvent event;
  const std::string_view rest(events.text + begin, events.length - begin);
  const size_t bytes = event.scan.read(rest);
  const bool nests = begin + bytes > until;
  if (event.scan.state() == ObjectScan::State::closed && nests) {
    take_one(rest.substr(0, bytes));
    return std::min(begin + bytes, events.size);
  }
  if (event.scan.state() == ObjectScan::State::open && !events.last) {
    event.text = rest;
    event.position = events.position + static_cast<int64_t>(begin);
    open_ = std::move(event);
    return events.size;
  }
  in_vain_ += bytes;
  if (event.scan.state() != ObjectScan::State::open) return std::nullopt;
  problem("the file ends within it");
  ++counts().skipped;
  return events.size;
}

// An event whose brackets match.
void KinetoReader::take_one(std::string_view event) {
  mended_.assign(event.size() + EventDecoder::kBefore + EventDecoder::kPadding, ' ');
  std::memcpy(mended_.data() + EventDecoder::kBefore, event.data(), event.size());
  const auto outcome = decoder_.decode(mended_.data() + EventDecoder::kBefore, event.size(), sink_);
  if (!outcome.failed) return;
  problem(outcome.complaint);
  mend(event);
}

// Takes the open event further with the text behind it. Returns where in that text it ends, 0 where it has none: then what follows
// is an event of its own.
size_t KinetoReader::go_on(std::string_view text) {
  in_hand_ = open_->position;
  const size_t bytes = open_->scan.read(text);
  if (open_->scan.state() == ObjectScan::State::broken) {
    take_open_by_looks();
    return 0;
  }
  if (!open_->dropped) open_->text += text.substr(0, bytes);
  if (open_->text.size() > options_.largest_event) {
    open_->dropped = true;
    open_->text = {};
  }
  if (open_->scan.state() == ObjectScan::State::open) return bytes;
  if (open_->dropped) {
    lose_open("it is longer than can be held");
  } else {
    const std::string event = std::move(open_->text);
    open_.reset();
    take_one(event);
  }
  return bytes;
}

void KinetoReader::lose_open(std::string_view why) {
  problem(why);
  ++counts().skipped;
  open_.reset();
}

// Of an event that is no JSON: the events that it looks like.
void KinetoReader::take_open_by_looks() {
  if (open_->dropped) return lose_open("it is longer than can be held");
  const std::string text = std::move(open_->text);
  open_.reset();
  std::vector<char> held(text.size() + EventDecoder::kBefore + EventDecoder::kPadding, ' ');
  std::memcpy(held.data() + EventDecoder::kBefore, text.data(), text.size());
  const size_t scanned = std::exchange(in_vain_, kMostInVain + 1);  // once is enough
  const size_t tail = take_apart({held.data() + EventDecoder::kBefore, text.size(), text.size(), in_hand_, false}, 0);
  in_vain_ = scanned + text.size();
  if (tail == kNowhere) return;
  behind_ = text.substr(tail);
  ended_ = true;
}

void KinetoReader::mend(std::string_view event) {
  for (const bool trust_escapes : {true, false}) {
    const std::string text = repaired(event, trust_escapes);
    mended_.assign(text.size() + EventDecoder::kBefore + EventDecoder::kPadding, ' ');
    std::memcpy(mended_.data() + EventDecoder::kBefore, text.data(), text.size());
    // An event must be whole before any part of it counts.
    int64_t events = 0;
    char* const begin = mended_.data() + EventDecoder::kBefore;
    const auto trial = decoder_.decode(begin, text.size(), [&](const RawEvent&) { ++events; });
    if (trial.failed || trial.ended || events == 0) continue;
    mending_ = true;
    (void)decoder_.decode(begin, text.size(), sink_);
    mending_ = false;
    return;
  }
  ++counts().skipped;
}

// Drops an event that is longer than can be held.
Status KinetoReader::skip_overlong() {
  in_hand_ = position_;
  ++counts().skipped;
  problem("it is longer than can be held");
  const int64_t from = position_;
  ObjectScan scan;
  while (position_ - from < kMostSkipped) {
    const size_t bytes = scan.read(view());
    if (scan.state() == ObjectScan::State::closed) {
      consume(bytes);
      return {};
    }
    // Brackets tell where it ends; where they do not, what looks like an event is one.
    const bool open = scan.state() == ObjectScan::State::open;
    const size_t next = open ? kNowhere : next_event(view(), 0);
    if (next != kNowhere) consume(next);
    if (next != kNowhere || drained_) return {};
    const size_t kept = open ? 0 : kKeptOfSkipped;
    if (held() > kept) consume(held() - kept);
    fill(held() + options_.block_bytes);
  }
  return error(fmt::format("no event begins in {} MiB from byte {} on", kMostSkipped >> 20, from), kGiveATrace);
}

void KinetoReader::consume_separators() {
  while (held() > 0 && separates(*text())) consume(1);
}

// Before what is held, from where it was read.
void KinetoReader::put_back(std::string_view text) {
  const std::string rest(view());
  position_ -= static_cast<int64_t>(text.size());
  begin_ = 0;
  end_ = text.size() + rest.size();
  buffer_.resize(std::max(buffer_.size(), end_ + EventDecoder::kBefore + EventDecoder::kPadding));
  char* const into = buffer_.data() + EventDecoder::kBefore;
  std::copy(rest.begin(), rest.end(), std::copy(text.begin(), text.end(), into));
}

// What stands behind the events, to the end of the file: whether it is whole can be told only there.
void KinetoReader::read_tail() {
  in_hand_ = position_;
  for (size_t wanted = options_.block_bytes; wanted <= kLongestTail && !drained_; wanted *= 2) fill(wanted);
  base_ = take_header(view().substr(0, kLongestTail), builder_.trace()).value_or(base_);
  JsonNesting nesting(1);
  if (list_) nesting.read("]");  // the one that closed the events
  nesting.read(view());
  const int64_t begin = position_;
  while (!drained_ && position_ - begin < kMostBehind) {
    consume(held());
    fill(options_.block_bytes);
    nesting.read(view());
  }
  whole_ = drained_ && !failed_ && nesting.closed();
  goes_on_ = nesting.goes_on();
}

// The bytes held up to `cut`, where an event begins, go to the block, in exchange for its buffer.
void KinetoReader::cut_block(Block& block, size_t cut) {
  size_t comma = cut;
  while (text()[comma] != ',') --comma;
  const size_t left = held() - cut;
  CHECK(begin_ == 0, "filled from the front");
  block.buffer.swap(buffer_);
  buffer_.resize(std::max(buffer_.size(), left + EventDecoder::kBefore + EventDecoder::kPadding));
  std::memcpy(buffer_.data() + EventDecoder::kBefore, block.buffer.data() + EventDecoder::kBefore + cut, left);
  block.size = comma;
  block.length = cut;
  block.position = position_;
  end_ = left;
  position_ += static_cast<int64_t>(cut);
}

bool KinetoReader::take_block(Block& block, OrderedWork& turns) {
  size_t wanted = options_.block_bytes;
  while (!ended_) {
    fill(wanted);
    const size_t cut = drained_ ? kNowhere : last_event(view());
    if (cut != kNowhere) {
      cut_block(block, cut);
      return true;
    }
    // Where no event begins within what is held, and where the file ends, it matters what came before.
    if (!turns.settle() || ended_) return false;
    if (open_) {
      consume(go_on(view()));
      if (drained_ && open_) lose_open("the file ends within it");
      wanted = options_.block_bytes;
      if (!drained_ || ended_) continue;
    }
    consume_separators();
    if (drained_) {
      const size_t tail = read_text({text(), held(), held(), position_, true});
      consume(tail == kNowhere ? held() : tail);
      ended_ = tail != kNowhere;
      return false;
    }
    if (wanted < options_.largest_event) {
      wanted *= 2;
    } else {
      overlong_ = skip_overlong();
      if (!overlong_) return false;
      wanted = options_.block_bytes;
    }
  }
  return false;
}

void KinetoReader::decode_apart(Block& block) {
  block.events = TraceBuilder();
  block.read = 0;
  block.plain = true;
  const EventsText events = block.text();
  const auto outcome = block.decoder.decode(events.text, events.size, [&block](const RawEvent& event) {
    ++block.read;
    if (block.plain) block.plain = block.events.add(event) == TraceBuilder::Taken::as_it_is;
  });
  block.plain = block.plain && !outcome.failed && !outcome.ended;
}

// What is not plain is read here: what is said of broken events depends on those before them.
void KinetoReader::add_block(Block& block) {
  EventsText events = block.text();
  size_t begin = open_ ? go_on({events.text, events.length}) : 0;
  if (begin > 0) {
    block.plain = false;
    while (begin < events.length && separates(events.text[begin])) ++begin;
    events = events.from(std::min(begin, events.size));
  }
  if (ended_) {
    behind_.append(events.text, events.length);
  } else if (events.size == 0) {
    // all of it was of the event before
  } else if (block.plain && builder_.append(block.events)) {
    counts().read += block.read;
  } else if (const size_t tail = read_text(events); tail != kNowhere) {
    behind_.assign(events.text + tail, events.length - tail);
    ended_ = true;
  }
  if (block.buffer.size() > 4 * options_.block_bytes) block.buffer = {};  // it held an event of that length
}

Status KinetoReader::read_events() {
  size_t threads = options_.threads;
  if (threads == 0) threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  if (drained_) threads = 1;  // it is all here
  std::vector<Block> blocks(threads);
  OrderedWork* own = nullptr;
  OrderedWork turns({.take = [&](size_t slot) { return take_block(blocks[slot], *own); },
                     .work =
                         [&](size_t slot) {
                           if (threads > 1) decode_apart(blocks[slot]);
                         },
                     .hand_on = [&](size_t slot) { add_block(blocks[slot]); }});
  own = &turns;
  turns.run(threads);
  if (ended_) {
    put_back(behind_);
    behind_ = {};
    read_tail();
  } else {
    in_hand_ = position_;
  }
  return overlong_;
}

Result<Trace> KinetoReader::read_whole() {
  if (Status status = find_events(); !status) return status.error();
  if (Status status = read_events(); !status) return status.error();
  if (goes_on_) {
    return error("another list or object follows the end of the trace", "give each trace a file of its own");
  }
  if (!whole_ && drained_) {
    const Error cut = cut_short();
    if (!options_.partial) return cut;
    counts().truncated = true;
    problem(cut.what);
  } else if (!whole_) {
    return error(fmt::format("more than {} MiB follow the events", kMostBehind >> 20), kGiveATrace);
  }
  if (counts().read == 0 && counts().skipped > 0) {
    return error("holds no event that can be read: " + counts().first_problem, kGiveATrace);
  }
  Trace trace = builder_.finish(base_);
  if (trace.rank < 0) trace.rank = rank_of_name(trace.file);
  return trace;
}

}  // namespace

Result<Trace> read_kineto(const std::string& path, const KinetoOptions& options) {
  auto source = ByteSource::open(path);
  if (!source) return source.error();
  return KinetoReader(std::move(*source), path, options).read();
}

Result<Trace> read_kineto_text(std::string_view text, const std::string& name, const KinetoOptions& options) {
  return KinetoReader(std::make_unique<TextSource>(text), name, options).read();
}

}  // namespace forerun
