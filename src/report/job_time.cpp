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

std::string money_text(double amount) {
  if (amount >= 1000) return grouped(static_cast<int64_t>(amount + 0.5));
  return amount >= 0.1 || amount == 0 ? fmt::format("{:.2f}", amount) : fmt::format("{:.2g}", amount);
}

std::string energy_text(double kwh) {
  if (kwh >= 1000) return fmt::format("{:.3g} MWh", kwh / 1e3);
  return kwh >= 1 || kwh <= 0 ? fmt::format("{:.3g} kWh", kwh) : fmt::format("{:.3g} Wh", kwh * 1e3);
}

std::string job_text(const JobTime& job) {
  std::string text = fmt::format("Job         {} iterations   {}\n", grouped(job.iterations), duration_text(job.hours));
  if (job.p90 > 0) {
    text += fmt::format("  8 of 10 such runs take {} to {}\n", duration_text(job.p10), duration_text(job.p90));
  }
  text += "  " + parts_text(job) + "\n";
  if (job.energy) {
    text += fmt::format("  energy of the GPU {} ({} to {})", energy_text(job.energy->expected),
                        energy_text(job.energy->low), energy_text(job.energy->high));
  }
  if (const auto cost = job.cost(); cost) {
    text += fmt::format("{}cost {} ({} to {})", job.energy ? ", " : "  ", money_text(cost->expected),
                        money_text(cost->low), money_text(cost->high));
  }
  return text + (job.energy || job.price ? "\n" : "");
}

void write_json(JsonWriter& json, const TimeParts& parts) {
  json.begin_object();
  for (const auto& [name, time] : parts.named()) json.field(name, milliseconds(time));
  json.end_object();
}

void write_json(JsonWriter& json, const JobTime& job) {
  json.begin_object().field("iterations", job.iterations).field("hours", job.hours);
  if (job.p90 > 0) json.field("low_hours", job.p10).field("high_hours", job.p90);
  json.field("gpu_hours", job.gpu_hours());
  if (job.energy) {
    json.field("energy_kwh", job.energy->expected)
        .field("low_energy_kwh", job.energy->low)
        .field("high_energy_kwh", job.energy->high);
  }
  if (const auto cost = job.cost(); cost) {
    json.field("price_per_hour", *job.price)
        .field("cost", cost->expected)
        .field("low_cost", cost->low)
        .field("high_cost", cost->high);
  }
  const auto whole = static_cast<double>(std::max<int64_t>(job.iteration.total().value, 1));
  json.key("parts_hours").begin_object();
  for (const auto& [name, time] : job.iteration.named()) {
    json.field(name, job.hours * static_cast<double>(time.value) / whole);
  }
  json.end_object().end_object();
}

}  // namespace forerun
