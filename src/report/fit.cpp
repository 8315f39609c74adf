#include "report/fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "report/job_time.h"
#include "report/prediction.h"
#include "report/table.h"

namespace forerun {
namespace {

std::string headline(const FitAnswer& answer) {
  const Prediction& p = answer.at;
  if (!answer.largest) {
    const bool may = p.memory_answer.verdict != FitVerdict::does_not_fit;
    return fmt::format("{} on {}: not even {} {} {}fits ({})", p.id, p.gpu, answer.axis, grouped(answer.smallest),
                       may ? "surely " : "", setup_text(p.setup));
  }
  return fmt::format("{} on {}: the largest {} that fits is {} ({})", p.id, p.gpu, answer.axis,
                     grouped(*answer.largest), setup_text(p.setup));
}

std::string limit_text(const FitAnswer& answer) {
  const Prediction& p = answer.at;
  std::string text = fmt::format("  {} of {}", needed_text(p), size_text(p.device_memory));
  if (answer.reserve.value > 0) text += fmt::format(", of which {} are kept free", size_text(answer.reserve));
  if (answer.largest && answer.margin > 0) {
    text += fmt::format(", and it gets by where runs take {} more than predicted", percent(answer.margin));
  }
  text += "; ";
  if (!answer.largest) return text + fmt::format("it {}", text_of(p.memory_answer.verdict));
  if (!answer.limit.empty()) return text + fmt::format("memory is not the limit: {}", answer.limit);
  if (!answer.next) return text + "nothing larger was tried";
  text += fmt::format("{} {} {} ({} allocated)", answer.axis, grouped(answer.next->value),
                      text_of(answer.next->verdict), size_text(answer.next->allocated));
  return text;
}

std::string time_text(const FitChange& change) {
  return fmt::format("{}x {:.2f}", change.time_modelled ? "~ " : "", change.time);
}

std::string saving_text(Bytes saving) {
  return saving.value >= 0 ? size_text(saving) : "-" + size_text(Bytes(-saving.value));
}

// What a column of the table has room for: without what stands in brackets; nothing where that is too long still.
std::string short_how(const std::string& how) {
  constexpr size_t kRoom = 40;
  const std::string cut = how.substr(0, std::min(how.find(" ("), how.find(", ")));
  return cut.size() <= kRoom ? cut : "";
}

std::string changes_text(const FitAnswer& answer) {
  if (answer.changes.empty()) return "";
  Table table({"change", "saves", "iteration", "largest", "how"});
  table.align_left(4);
  std::string notes;
  for (const FitChange& change : answer.changes) {
    const std::string largest =
        !change.largest ? "none" : grouped(*change.largest) + (change.reaches_limit ? " (model's limit)" : "");
    const std::string how = short_how(change.how);
    table.add({change.name, saving_text(change.saving), time_text(change), largest, how.empty() ? "see below" : how});
    std::string note = change.note;
    if (how.empty()) note = note.empty() ? change.how : change.how + "; " + note;
    if (!note.empty()) notes += wrapped(fmt::format("  - {}: {}", change.name, note), "    ");
  }
  return fmt::format("\nWhat would let a larger one in (saves, iteration: at {} {})\n", answer.axis,
                     grouped(answer.largest.value_or(answer.smallest))) +
         table.text() + notes;
}

void write_json(JsonWriter& json, const FitChange& change) {
  json.begin_object()
      .field("name", change.name)
      .field("how", change.how)
      .field("saved_bytes", change.saving.value)
      .field("time_factor", change.time)
      .field("time_modelled", change.time_modelled)
      .field("largest", change.largest)
      .field("note", change.note)
      .end_object();
}

}  // namespace

std::string to_text(const FitAnswer& answer, const TextStyle& style) {
  const Prediction& p = answer.at;
  std::string out =
      warnings_text(p) + wrapped(style.bold(headline(answer)), "  ") + wrapped(limit_text(answer), "    ");
  if (answer.fits_again) {
    out +=
        wrapped(fmt::format("  {} {} fits again, above some that do not: what the allocator has to give back before it "
                            "can go on is another thing each time",
                            answer.axis, grouped(*answer.fits_again)),
                "    ");
  } else if (!answer.monotone) {
    out += wrapped(
        fmt::format("  some smaller ones do not fit: what cuDNN and the allocator take jumps from one {} to the next",
                    answer.axis),
        "    ");
  }
  out += fmt::format("  iteration {:.1f} ms, {} samples/s", milliseconds(p.times.iteration),
                     rate_text(p.samples_per_second));
  if (p.tokens_per_second > 0) out += fmt::format(", {} tokens/s", rate_text(p.tokens_per_second));
  out += "\n\n";
  if (p.job) out += job_text(*p.job) + "\n";
  out += style.details ? memory_headline(p) + memory_text(p.memory, p.memory_answer, p.context) : memory_summary(p);
  return out + changes_text(answer);
}

std::string to_json(const FitAnswer& answer) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.fit/1")
      .field("axis", answer.axis)
      .field("largest", answer.largest)
      .field("fits", answer.largest.has_value())
      .field("step", answer.step)
      .field("monotone", answer.monotone)
      .field("fits_again", answer.fits_again)
      .field("limit", answer.limit)
      .field("reserve", answer.reserve.value)
      .field("margin", answer.margin)
      .field("graphs", answer.graphs);
  if (answer.next) {
    json.key("next")
        .begin_object()
        .field("value", answer.next->value)
        .field("fits", answer.next->fits)
        .field("verdict", name_of(answer.next->verdict))
        .field("peak_allocated", answer.next->allocated.value)
        .field("peak_reserved", answer.next->reserved.value)
        .end_object();
  }
  json.key("changes").begin_array();
  for (const FitChange& change : answer.changes) write_json(json, change);
  json.end_array().key("prediction").raw(to_json(answer.at));
  return json.end_object().take();
}

}  // namespace forerun
