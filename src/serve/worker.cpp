#include "serve/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "ask/ask.h"
#include "ask/question.h"
#include "base/data_dir.h"
#include "base/json_writer.h"
#include "cost/calibrated/machine.h"
#include "ingest/importers.h"
#include "predict/machine_calibration.h"
#include "serve/trace_slices.h"
#include "serve/worker_limits.h"
#include "zoo/checkpoints.h"

namespace forerun::serve {
namespace {

constexpr size_t kLongestHead = 200;
constexpr uintmax_t kLargestSettings = uintmax_t{1} << 20;

bool write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t some = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(some));
  }
  return true;
}

bool read_all(char* into, size_t size) {
  for (size_t got = 0; got < size;) {
    const ssize_t some = read(STDIN_FILENO, into + got, size - got);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    got += static_cast<size_t>(some);
  }
  return true;
}

struct Asked {
  std::string name, words;
  bool beside_others = false;  // other processes answer at the same time
};

// Nothing at the end of the input.
std::optional<Asked> next_question() {
  std::string head;
  for (char c = 0; read_all(&c, 1) && head.size() < kLongestHead;) {
    if (c != '\n') {
      head += c;
      continue;
    }
    const size_t first = head.find(' '), second = head.rfind(' ');
    if (first == second) return std::nullopt;
    size_t size = 0;
    const char* const end = head.data() + second;
    if (std::from_chars(head.data() + first + 1, end, size).ptr != end) return std::nullopt;
    Asked asked{head.substr(0, first), std::string(size, '\0'), head.substr(second + 1) != "0"};
    if (!read_all(asked.words.data(), size)) return std::nullopt;
    return asked;
  }
  return std::nullopt;
}

// {"file": ID}: what kind of file an upload is, and which verbs take it.
Result<std::string> answer_kind(const std::string& words) {
  auto question = ask::Question::parse(words);
  if (!question) return question.error();
  const std::string path = question->needed("file", "give the upload");
  if (const Status status = question->status(); !status.ok()) return status.error();
  const auto kind = sniff_file(path);
  if (!kind) return kind.error();
  JsonWriter json;
  json.begin_object();
  for (const Importer& importer : importers()) {
    if (importer.kind != *kind) continue;
    json.field("kind", importer.name).key("verbs").begin_array();
    for (const char* verb : importer.verbs) json.value(verb);
    return json.end_array().end_object().take();
  }
  // Files of settings (machine.json, prices) do not tell what they are; whoever is given one looks itself.
  std::error_code error;
  if (*kind == FileKind::unknown && std::filesystem::file_size(path, error) <= kLargestSettings && !error) {
    return json.field("kind", "a file that does not tell what it is")
        .key("verbs")
        .begin_array()
        .end_array()
        .end_object()
        .take();
  }
  return Error{*kind == FileKind::empty ? "is empty" : "is of no kind that Forerun reads", path,
               "upload a profiler trace, a capture, an ONNX model, a config.json or a table of jobs"};
}

void tell_progress(const Progress& progress) {
  std::string what(progress.what.substr(0, 60));
  for (char& c : what) c = c == '\n' ? ' ' : c;
  write_all(fmt::format("p {} {} {}\n", progress.done, progress.total, what));
}

// What a worker keeps from question to question.
struct Kept {
  ask::Knowledge knowledge;
  ask::KeptTraces traces;
  TraceSlicer slicer{traces};
};

Result<std::string> answer(const Asked& asked, Kept& kept) {
  if (asked.name == "kind") return answer_kind(asked.words);
  if (asked.name == "slices") return kept.slicer.answer(asked.words);
  return ask::answer(asked.name, asked.words,
                     {.knowledge = kept.knowledge,
                      .control = {.progress = tell_progress},
                      .policies = {},
                      .traces = &kept.traces,
                      .beside_others = asked.beside_others});
}

std::vector<std::string> readable_places(const WorkerOptions& options, const std::string& data) {
  std::vector<std::string> places = {
      data, "/usr/lib", "/lib", "/lib64", "/etc/ld.so.cache", "/proc/self", "/sys/devices/system/cpu"};
  if (!options.uploads.empty()) places.push_back(options.uploads);
  if (const std::string machine = configured_machine(); !machine.empty()) places.push_back(machine);
  return places;
}

}  // namespace

std::string error_json(const Error& error) {
  JsonWriter json;
  return json.begin_object()
      .field("what", error.what)
      .field("where", error.where)
      .field("remedy", error.remedy)
      .end_object()
      .take();
}

Error error_from_json(const std::string& json) {
  const auto read = nlohmann::json::parse(json, nullptr, false);
  if (!read.is_object()) return {"the worker's answer cannot be read", "", ""};
  return {read.value("what", ""), read.value("where", ""), read.value("remedy", "")};
}

Status run_worker(const WorkerOptions& options) {
  const auto data = data_dir();
  if (!data) return data.error();
  limit_worker(options.memory_bytes);
  if (!options.uploads.empty() && chdir(options.uploads.c_str()) != 0) {
    return Error{std::string("cannot be entered: ") + strerror(errno), options.uploads, ""};
  }
  if (has_landlock() && !open_only(readable_places(options, data->string()))) {
    return Error{"the kernel refuses to bound what a worker opens", "Landlock", ""};
  }
  Kept kept;
  if (const auto loaded = kept.knowledge.with(); !loaded) return loaded.error();
  while (const auto asked = next_question()) {
    Result<std::string> answered = Error{};
    try {
      answered = answer(*asked, kept);
    } catch (const std::bad_alloc&) {
      answered = Error{"this takes more memory than one answer may", "", "ask for less, or use the command line"};
    }
    const std::string bytes = answered ? *answered : error_json(answered.error());
    if (!write_all(fmt::format("{} {}\n", answered ? 'a' : 'f', bytes.size())) || !write_all(bytes)) break;
  }
  return {};
}

}  // namespace forerun::serve
