#include "serve/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ask/question.h"
#include "base/nearest.h"
#include "cluster/policies.h"
#include "store/random_hex.h"
#include "zoo/zoo.h"

namespace forerun::serve {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kUpload = "upload:";

std::vector<Word> all_of(std::initializer_list<std::vector<Word>> parts) {
  std::vector<Word> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<Word> model_words() {
  using enum WordKind;
  return {{"model", model},    {"batch", number},       {"set", table},       {"precision", text},
          {"optimizer", text}, {"channels_last", flag}, {"checkpoint", text}, {"accumulate", number},
          {"lora", any},       {"freeze", any},         {"quantize", text},   {"clip_grad", number},
          {"loop", text},      {"attention", text},     {"compile", text},    {"ema", flag}};
}
std::vector<Word> memory_words() {
  using enum WordKind;
  return {{"allocator", text}, {"ddp", flag}, {"bucket_view", flag}, {"zero", number}, {"gpus", number}};
}
std::vector<Word> job_words() {
  using enum WordKind;
  return {{"iterations", any}, {"samples", any}, {"tokens", any}, {"epochs", number}, {"dataset_size", any}};
}
std::vector<Word> price_words() {
  using enum WordKind;
  return {{"price", table}, {"prices", file}};
}

std::vector<Word> predict_words() {
  using enum WordKind;
  return all_of({model_words(),
                 memory_words(),
                 job_words(),
                 price_words(),
                 {{"gpu", text}, {"device_files", files}, {"machine", file}, {"brief", flag}}});
}

std::vector<Word> schedule_words() {
  using enum WordKind;
  return {{"file", file},
          {"format", text},
          {"synthetic", text},
          {"from", any},
          {"to", any},
          {"draw", text},
          {"gpus", table},
          {"gpu_count", any},
          {"first", number},
          {"max_gpus", number},
          {"member", text},
          {"throughputs", file},
          {"lenient", flag},
          {"machine", file},
          {"policies", policies},
          {"predictor", text},
          {"by", any},
          {"quotas", any},
          {"repeat", number},
          {"seed", number},
          {"gpus_per_node", number},
          {"nodes_per_rack", number},
          {"network", text},
          {"oversubscription", number},
          {"node_loss", number},
          {"rack_loss", number},
          {"restart_cost", number},
          {"failure_hours", number},
          {"repair_hours", number},
          {"checkpoint", number}};
}

std::vector<AllowedQuestion> make_questions() {
  using enum WordKind;
  return {
      {"predict", "iteration time and memory of a model", true, predict_words()},
      {"ops", "the ops of that prediction, in columns", true, predict_words()},
      {"memory", "its memory over the iteration, in columns", true, predict_words()},
      {"fit", "the largest batch or length that fits", true,
       all_of({predict_words(), {{"axis", text}, {"reserve", text}, {"margin", text}}})},
      {"compare", "GPUs side by side", true,
       all_of({model_words(),
               job_words(),
               price_words(),
               {{"device_files", files},
                {"machine", file},
                {"gpus", any},
                {"by", text},
                {"deadline", any},
                {"budget", number},
                {"no_largest_batch", flag}}})},
      {"scale", "the step of many GPUs", true,
       all_of({model_words(),
               job_words(),
               price_words(),
               {{"kinds", table},         {"networks", table},     {"gpu", text},
                {"network", text},        {"gpus", any},           {"node", number},
                {"within", text},         {"strategy", text},      {"stack", text},
                {"search", flag},         {"explain", text},       {"oversubscription", number},
                {"global_batch", number}, {"micro_batch", number}, {"efficiency", file},
                {"mttf", number},         {"restart", number},     {"storage", number},
                {"spread", number},       {"batches", text},       {"machine", file}}})},
      {"whatif", "what optimizations would bring, of a model or an uploaded trace", true,
       all_of({model_words(), {{"gpu", text}, {"profiled", flag}, {"machine", file}, {"apply", any}, {"all", flag}}})},
      {"trace",
       "where the time of uploaded profiler traces went",
       true,
       {{"files", files},
        {"compare", files},
        {"top", number},
        {"no_path", flag},
        {"like_hta", flag},
        {"drop_last_step", flag},
        {"kernel_gap_us", number},
        {"partial", flag}}},
      {"sweep", "many configurations, in columns", false,
       all_of({model_words(), job_words(), price_words(), {{"gpu", text}, {"machine", file}, {"over", axes}}})},
      {"schedule", "jobs on a cluster under policies", false, schedule_words()},
      {"jobs", "what became of every job of a schedule, as CSV", false, schedule_words()},
  };
}

// What is done with one question's words; the first fault is kept.
class Admission {
 public:
  explicit Admission(const std::function<bool(const std::string&)>& is_there) : is_there_(is_there) {}

  void take(const Word& word, ordered_json& value) {
    switch (word.kind) {
      case WordKind::model: return take_model(word.name, value);
      case WordKind::file:
      case WordKind::files: return take_files(word, value);
      case WordKind::policies: return take_policies(word.name, value);
      case WordKind::axes: return take_axes(word.name, value);
      default: return;  // ask/ holds it to its kind
    }
  }

  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }
  std::vector<std::string> uploads;

 private:
  void refuse(const std::string& where, std::string what, std::string remedy) {
    if (!fault_) fault_ = Error{std::move(what), where, std::move(remedy)};
  }

  // "upload:ID" becomes ID, the file's name in the workers' folder.
  bool take_upload(const std::string& where, ordered_json& value) {
    const auto* named = value.get_ptr<const std::string*>();
    if (named == nullptr || !named->starts_with(kUpload)) return false;
    const std::string id = named->substr(kUpload.size());
    if (!store::is_hex(id, 64) || !is_there_(id)) {
      refuse(where, fmt::format("there is no upload '{}'", id.substr(0, 80)), "POST /api/v1/uploads gives an id");
      return true;
    }
    if (std::find(uploads.begin(), uploads.end(), id) == uploads.end()) uploads.push_back(id);
    value = id;
    return true;
  }

  void take_model(const std::string& where, ordered_json& value) {
    if (!value.is_string()) return refuse(where, "is no text", "give a name of the zoo, or upload:ID");
    if (take_upload(where, value)) return;
    const std::string name = value.get<std::string>().substr(0, 200);
    if (zoo::is_known_name(name) && name == value.get<std::string>()) return;
    refuse(where, fmt::format("no model or family is called '{}'", name),
           did_you_mean(name, zoo::known_names()) + " A file of your own is uploaded first, and named as upload:ID");
  }

  void take_files(const Word& word, ordered_json& value) {
    if (std::string_view(word.name) == "machine" && value == "none") return;
    const auto one = [&](ordered_json& entry) {
      if (!take_upload(word.name, entry)) {
        refuse(word.name, "names no upload", "POST the file to /api/v1/uploads and name it as upload:ID");
      }
    };
    if (word.kind == WordKind::files && value.is_array()) {
      for (ordered_json& entry : value) one(entry);
    } else {
      one(value);
    }
  }

  void take_policies(const std::string& where, ordered_json& value) {
    std::vector<std::string> known;
    for (const cluster::PolicyEntry& entry : cluster::policies()) known.emplace_back(entry.name);
    const auto one = [&](const ordered_json& entry) {
      if (!entry.is_string()) return refuse(where, "is no text", "give names of policies");
      const auto policy = entry.get<std::string>();
      const std::string name = policy.substr(0, policy.find(':'));
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        refuse(where, fmt::format("no policy is called '{}'", name.substr(0, 80)), did_you_mean(name, known));
      }
    };
    if (!value.is_array()) return one(value);
    for (const ordered_json& entry : value) one(entry);
  }

  void take_axes(const std::string& where, ordered_json& value) {
    if (!value.is_object() || !value.contains("model")) return;
    ordered_json& models = value["model"];
    if (!models.is_array()) return take_model(where + ".model", models);
    for (ordered_json& entry : models) take_model(where + ".model", entry);
  }

  const std::function<bool(const std::string&)>& is_there_;
  std::optional<Error> fault_;
};

}  // namespace

const std::vector<AllowedQuestion>& allowed_questions() {
  static const std::vector<AllowedQuestion> list = make_questions();
  return list;
}

const AllowedQuestion* find_question(std::string_view name) {
  for (const AllowedQuestion& question : allowed_questions()) {
    if (name == question.name) return &question;
  }
  return nullptr;
}

Result<Admitted> admit(const AllowedQuestion& question, std::string_view body,
                       const std::function<bool(const std::string&)>& is_there) {
  // Its size, depth and form.
  if (const auto read = ask::Question::parse(body); !read) return read.error();
  ordered_json words = ordered_json::parse(body, nullptr, /*allow_exceptions=*/false);
  Admission admission(is_there);
  for (auto& [name, value] : words.items()) {
    if (value.is_null()) continue;
    const auto word = std::find_if(question.words.begin(), question.words.end(),
                                   [&, &key = name](const Word& one) { return key == one.name; });
    if (word == question.words.end()) {
      std::vector<std::string> known;
      for (const Word& one : question.words) known.emplace_back(one.name);
      return Error{fmt::format("there is no word '{}' here", name.substr(0, 80)), "", did_you_mean(name, known)};
    }
    admission.take(*word, value);
  }
  if (admission.fault()) return *admission.fault();
  return Admitted{words.dump(-1, ' ', false, ordered_json::error_handler_t::replace), std::move(admission.uploads)};
}

}  // namespace forerun::serve
