#include "base/part_lines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/line_reader.h"
#include "base/output_file.h"
#include "base/provenance.h"

namespace forerun {
namespace {

constexpr std::string_view kSchema = "forerun.part/1";
constexpr std::string_view kBegin = R"({"case":)";
constexpr std::string_view kSum = R"(,"sum":")";
constexpr std::string_view kRow = R"(","row":)";
constexpr size_t kSumDigits = 16;

std::string sum_of(size_t number, std::string_view row) { return text_fingerprint(fmt::format("{}:{}", number, row)); }

bool pass(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

void write_words(JsonWriter& json, const char* name, const ShardedWork::Words& words) {
  json.key(name).begin_object();
  for (const auto& [word, values] : words) json.field(word, values);
  json.end_object();
}

using PartJson = nlohmann::ordered_json;

// Reads fields of the head; one that is missing or of another type makes it none.
class HeadReader {
 public:
  explicit HeadReader(const PartJson& head) : head_(head) {}

  std::string text(const char* name) {
    return read<std::string>(name, [](const PartJson& value) { return value.is_string(); });
  }
  size_t count(const char* name) {
    return read<size_t>(name, [](const PartJson& value) { return value.is_number_unsigned(); });
  }
  std::string object(const char* name) {
    const auto found = head_.find(name);
    sound_ = sound_ && found != head_.end() && found->is_object();
    return sound_ ? found->dump() : "";
  }
  ShardedWork::Words words(const char* name) {
    ShardedWork::Words words;
    const auto found = head_.find(name);
    sound_ = sound_ && found != head_.end() && found->is_object();
    if (!sound_) return words;
    for (const auto& [word, values] : found->items()) {
      sound_ = sound_ && values.is_array();
      std::vector<std::string> list;
      for (const PartJson& value : values) {
        sound_ = sound_ && value.is_string();
        if (sound_) list.push_back(value.get<std::string>());
      }
      words.emplace_back(word, std::move(list));
    }
    return words;
  }
  [[nodiscard]] bool sound() const { return sound_; }

 private:
  template <class T, class Check>
  T read(const char* name, Check check) {
    const auto found = head_.find(name);
    sound_ = sound_ && found != head_.end() && check(*found);
    return sound_ ? found->get<T>() : T();
  }

  const PartJson& head_;
  bool sound_ = true;
};

}  // namespace

std::string part_head_line(const PartHead& head) {
  const ShardedWork& work = head.work;
  JsonWriter json;
  json.begin_object()
      .field("schema", kSchema)
      .field("verb", work.verb)
      .field("shard", head.shard.index)
      .field("shards", head.shard.count)
      .field("cases", work.cases)
      .field("program", work.program)
      .field("data", work.data);
  write_words(json, "request", work.request);
  write_words(json, "files", work.files);
  json.key("about").raw(work.about);
  return json.end_object().take();
}

Result<PartHead> parse_part_head(std::string_view line, const std::string& where) {
  const Error none{"is no part of a sharded question", where, "give a file that --shard I/N --out FILE wrote"};
  const PartJson json = PartJson::parse(line, nullptr, false);
  if (!json.is_object()) return none;
  HeadReader reader(json);
  const std::string schema = reader.text("schema");
  if (reader.sound() && schema != kSchema && schema.starts_with("forerun.part/")) {
    return Error{fmt::format("is of the form {}, and this program knows {}", schema, kSchema), where,
                 "merge it with the program that wrote it"};
  }
  PartHead head;
  head.work.verb = reader.text("verb");
  head.shard.index = reader.count("shard");
  head.shard.count = reader.count("shards");
  head.work.cases = reader.count("cases");
  head.work.program = reader.text("program");
  head.work.data = reader.text("data");
  head.work.request = reader.words("request");
  head.work.files = reader.words("files");
  head.work.about = reader.object("about");
  if (!reader.sound() || schema != kSchema || head.shard.index >= head.shard.count || head.shard.count > kMostShards) {
    return none;
  }
  return head;
}

std::string part_case_line(size_t number, std::string_view row) {
  return fmt::format("{}{}{}{}{}{}}}", kBegin, number, kSum, sum_of(number, row), kRow, row);
}

std::optional<PartCase> parse_part_case(std::string_view line) {
  PartCase found;
  if (!pass(line, kBegin) || !line.ends_with('}')) return std::nullopt;
  const auto [end, fault] = std::from_chars(line.data(), line.data() + line.size(), found.number);
  if (fault != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  if (!pass(line, kSum) || line.size() < kSumDigits) return std::nullopt;
  const std::string_view sum = line.substr(0, kSumDigits);
  line.remove_prefix(kSumDigits);
  if (!pass(line, kRow) || line.empty()) return std::nullopt;
  line.remove_suffix(1);
  found.row = line;
  if (sum_of(found.number, found.row) != sum) return std::nullopt;
  return found;
}

Status each_line(int file, const std::string& path, const std::function<Status(const PlacedLine&)>& take) {
  constexpr size_t kBlock = size_t{1} << 20;
  std::string buffer;  // from `at` on
  uint64_t at = 0;
  for (bool more = true; more;) {
    const size_t held = buffer.size();
    buffer.resize(held + kBlock);
    ssize_t got = 0;
    do {
      got = ::pread(file, buffer.data() + held, kBlock, static_cast<off_t>(at + held));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return file_error("cannot be read", path, errno);
    buffer.resize(held + static_cast<size_t>(got));
    more = got > 0;
    size_t begin = 0;
    for (size_t end = buffer.find('\n', held); end != std::string::npos; end = buffer.find('\n', begin)) {
      const std::string_view line = std::string_view(buffer).substr(begin, end - begin);
      if (Status status = take({at + begin, line, true}); !status.ok()) return status;
      begin = end + 1;
    }
    buffer.erase(0, begin);
    at += begin;
    if (buffer.size() > LineReader::kLongestLine) {
      return Error{fmt::format("has a line of more than {} bytes", LineReader::kLongestLine), path,
                   "give a file that --shard I/N --out FILE wrote"};
    }
  }
  return buffer.empty() ? Status() : take({at, buffer, false});
}

}  // namespace forerun
