#include "report/job_time.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/table.h"

namespace forerun {

std::string duration_text(double hours) {
  if (hours * 3600 < 120) return fmt::format("{:.3g} s", hours * 3600);
  if (hours < 2) return fmt::format("{:.3g} min", hours * 60);
  if (hours < 72) return fmt::format("{:.1f} h", hours);
  const double days = hours / 24;
  return days < 100 ? fmt::format("{:.1f} days", days) : grouped(static_cast<int64_t>(days + 0.5)) + " days";
}

std::string parts_text(const JobTime& job) {
  const auto whole = static_cast<double>(std::max<int64_t>(job.iteration.total().value, 1));
  std::string text;
  for (const auto& [name, time] : job.iteration.named()) {
    if (time.value <= 0) continue;
    const double share = static_cast<double>(time.value) / whole;
    std::string words(name);
    std::replace(words.begin(), words.end(), '_', ' ');
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", words, duration_text(share * job.hours),
                        percent(share, 0));
  }
  return text;
}

std::string job_text(const JobTime& job) {
  std::string text = fmt::format("Job         {} iterations   {}\n", grouped(job.iterations), duration_text(job.hours));
  if (job.p90 > 0) {
    text += fmt::format("  8 of 10 such runs take {} to {}\n", duration_text(job.p10), duration_text(job.p90));
  }
  return text + "  " + parts_text(job) + "\n";
}

void write_json(JsonWriter& json, const TimeParts& parts) {
  json.begin_object();
  for (const auto& [name, time] : parts.named()) json.field(name, milliseconds(time));
  json.end_object();
}

void write_json(JsonWriter& json, const JobTime& job) {
  json.begin_object().field("iterations", job.iterations).field("hours", job.hours);
  if (job.p90 > 0) json.field("low_hours", job.p10).field("high_hours", job.p90);
  const auto whole = static_cast<double>(std::max<int64_t>(job.iteration.total().value, 1));
  json.key("parts_hours").begin_object();
  for (const auto& [name, time] : job.iteration.named()) {
    json.field(name, job.hours * static_cast<double>(time.value) / whole);
  }
  json.end_object().end_object();
}

}  // namespace forerun
