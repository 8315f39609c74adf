#include "ingest/capture/record_head.h"

#include "base/line_reader.h"
#include "ingest/capture/json_walk.h"

namespace forerun {
namespace {

RecordKind kind_named(std::string_view schema) {
  if (schema.empty() || schema == "run/1" || schema == "run/2" || schema == "run/3") return RecordKind::run;
  if (schema == "op/1") return RecordKind::sample;
  if (schema == "env/1") return RecordKind::environment;
  return RecordKind::other;
}

// Takes `token` off the front of `text`, with the blanks before it.
bool take(std::string_view& text, std::string_view token) {
  const size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos || !text.substr(start).starts_with(token)) return false;
  text.remove_prefix(start + token.size());
  return true;
}

}  // namespace

class RecordHeadReader::Impl : JsonWalk {
 public:
  Result<RecordHead> read(std::string_view line) {
    RecordHead head;
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    auto code = parser_.iterate(line.data(), line.size(), line.size() + LineReader::kPadding).get(document);
    if (code == simdjson::SUCCESS) code = document.get_object().get(object);
    if (code != simdjson::SUCCESS) fail(code, "the record", "a JSON object");
    const bool read =
        code == simdjson::SUCCESS && each_field(object, "the record", [&](std::string_view key, Value value) {
          std::string_view name;
          if (key == "schema") return text(value, "schema", head.schema);
          if (key == "id") return text(value, "id", head.id);
          if (key != "status") return true;
          if (!text(value, "status", name)) return false;
          head.status = run_status_named(name);
          return true;
        });
    if (!read) return Error{complaint(), "", ""};
    const char* rest = nullptr;
    if (document.current_location().get(rest) == simdjson::SUCCESS) {
      return Error{"the record is followed by more text on its line", "", ""};
    }
    head.kind = kind_named(head.schema);
    return head;
  }

 private:
  simdjson::ondemand::parser parser_;
};

RecordHeadReader::RecordHeadReader() : impl_(std::make_unique<Impl>()) {}
RecordHeadReader::RecordHeadReader(RecordHeadReader&&) noexcept = default;
RecordHeadReader& RecordHeadReader::operator=(RecordHeadReader&&) noexcept = default;
RecordHeadReader::~RecordHeadReader() = default;

RecordKind RecordHeadReader::kind(std::string_view line) {
  std::string_view rest = line;
  if (take(rest, "{") && take(rest, "\"schema\"") && take(rest, ":") && take(rest, "\"")) {
    const size_t end = rest.find('"');
    if (end != std::string_view::npos) return kind_named(rest.substr(0, end));
  }
  const auto head = impl_->read(line);
  return head ? head->kind : RecordKind::run;
}

Result<RecordHead> RecordHeadReader::read(std::string_view line) { return impl_->read(line); }

}  // namespace forerun
