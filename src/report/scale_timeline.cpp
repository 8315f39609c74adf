// A step as it passes: for a trace viewer (a process a stage, threads for computation and network), and as a picture with
// the memory of each stage beside it.
#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "report/scale.h"
#include "report/svg.h"
#include "report/table.h"

namespace forerun {
namespace {

using scale::StepEvent;
using scale::StepEventKind;

bool is_pass(StepEventKind kind) { return kind != StepEventKind::exchange && kind != StepEventKind::update; }

std::string event_name(const StepEvent& event) {
  if (!is_pass(event.kind)) return std::string(name_of(event.kind));
  return fmt::format("{} {}", name_of(event.kind), event.micro_batch);
}

void write_name(JsonWriter& json, const char* what, int64_t process, int64_t thread, const std::string& name) {
  json.begin_object().field("name", what).field("ph", "M").field("pid", process).field("tid", thread);
  json.key("args").begin_object().field("name", name).end_object().end_object();
}

const char* colour_of(StepEventKind kind) {
  switch (kind) {
    case StepEventKind::forward: return svg::kSky;
    case StepEventKind::backward: return svg::kBlue;
    case StepEventKind::weights: return svg::kGreen;
    case StepEventKind::exchange: return svg::kOrange;
    case StepEventKind::update: return svg::kPurple;
  }
  return svg::kGrey;
}

constexpr double kStageHeight = 34;
constexpr double kTimesWidth = 760, kMemoryWidth = 220;

// Two rows a stage: what its GPUs run, and below what they send.
class StepDrawing {
 public:
  StepDrawing(const ScaleAnswer& answer, const scale::Step& step)
      : answer_(answer),
        step_(step),
        times_{.left = 80, .top = 96, .width = kTimesWidth, .height = kStageHeight * stages()},
        memory_{.left = times_.right() + 60, .top = 96, .width = kMemoryWidth, .height = times_.height},
        picture_(memory_.right() + 40, times_.bottom() + 90) {}

  std::string text() {
    picture_.heading(
        times_.left,
        fmt::format("{} on {} GPUs: a step of {:.1f} ms", answer_.model, step_.plan.gpus(), milliseconds(step_.time)),
        fmt::format("{}; {}", describe(step_.plan), answer_.gpu));
    axes();
    for (const StepEvent& event : answer_.picture->events) draw(event);
    for (size_t i = 0; i < answer_.picture->memory.size(); ++i) draw(i, answer_.picture->memory[i]);
    legend();
    return picture_.document();
  }

 private:
  [[nodiscard]] double stages() const { return static_cast<double>(answer_.picture->memory.size()); }
  [[nodiscard]] double most_memory() const {
    double most = static_cast<double>(answer_.device_memory.value);
    for (const scale::MemoryUse& use : answer_.picture->memory) {
      most = std::max(most, static_cast<double>(use.total().value));
    }
    return most;
  }

  void axes() {
    const double end = milliseconds(step_.time);
    for (const double tick : svg::round_ticks(end)) {
      if (tick <= end) picture_.tick_below(times_, tick / end, fmt::format("{:g} ms", tick));
    }
    const double most = most_memory() / (1 << 30);
    for (const double tick : svg::round_ticks(most, 2)) {
      if (tick <= most) picture_.tick_below(memory_, tick / most, fmt::format("{:g} GiB", tick));
    }
    for (int64_t stage = 0; stage < static_cast<int64_t>(stages()); ++stage) {
      picture_.text(times_.left - 8, row(stage) + kStageHeight / 2, fmt::format("stage {}", stage), {.anchor = "end"});
    }
  }

  [[nodiscard]] double row(int64_t stage) const { return times_.top + kStageHeight * static_cast<double>(stage); }

  void draw(const StepEvent& event) {
    const auto share = [&](Nanoseconds time) {
      return std::min(1.0,
                      static_cast<double>(time.value) / static_cast<double>(std::max<int64_t>(step_.time.value, 1)));
    };
    const bool sends = event.kind == StepEventKind::exchange;
    const double left = times_.x(share(event.begin));
    picture_.box({.left = left,
                  .top = row(event.stage) + (sends ? 22 : 4),
                  .width = std::max(0.3, times_.x(share(event.begin + event.duration)) - left - 0.2),
                  .height = sends ? 6.0 : 16.0},
                 colour_of(event.kind));
  }

  void draw(size_t stage, const scale::MemoryUse& use) {
    const std::pair<Bytes, const char*> parts[] = {{use.parameters, svg::kBlue},  {use.gradients, svg::kOrange},
                                                   {use.states, svg::kPurple},    {use.activations, svg::kSky},
                                                   {use.transient, svg::kYellow}, {use.context, svg::kGrey}};
    double left = memory_.left;
    for (const auto& [bytes, colour] : parts) {
      const double width = memory_.width * static_cast<double>(bytes.value) / most_memory();
      picture_.box({.left = left, .top = row(static_cast<int64_t>(stage)) + 4, .width = width, .height = 16}, colour);
      left += width;
    }
  }

  void legend() {
    double left = times_.left;
    for (const StepEventKind kind : {StepEventKind::forward, StepEventKind::backward, StepEventKind::weights,
                                     StepEventKind::exchange, StepEventKind::update}) {
      picture_.legend_line({left, times_.bottom() + 56}, {.colour = colour_of(kind), .width = 0}, name_of(kind));
      left += 150;
    }
    left = times_.left;
    const std::pair<const char*, const char*> memory[] = {{"parameters", svg::kBlue},  {"gradients", svg::kOrange},
                                                          {"optimizer", svg::kPurple}, {"activations", svg::kSky},
                                                          {"transient", svg::kYellow}, {"context", svg::kGrey}};
    picture_.text(left, times_.bottom() + 76, "memory:");
    for (const auto& [name, colour] : memory) {
      left += 110;
      picture_.legend_line({left, times_.bottom() + 76}, {.colour = colour, .width = 0}, name);
    }
  }

  const ScaleAnswer& answer_;
  const scale::Step& step_;
  svg::Plot times_, memory_;
  svg::Picture picture_;
};

}  // namespace

std::string step_trace(const ScaleAnswer& answer) {
  const scale::Step* step = shown_step(answer);
  JsonWriter json;
  json.begin_object().field("displayTimeUnit", "ms").key("traceEvents").begin_array();
  if (step != nullptr && answer.picture) {
    for (size_t stage = 0; stage < answer.picture->memory.size(); ++stage) {
      const auto process = static_cast<int64_t>(stage);
      write_name(json, "process_name", process, 0,
                 fmt::format("stage {} ({} GPUs)", stage, step->plan.gpus() / step->plan.pipeline));
      write_name(json, "thread_name", process, 0, "computation");
      write_name(json, "thread_name", process, 1, "network");
    }
    for (const StepEvent& event : answer.picture->events) {
      json.begin_object()
          .field("name", event_name(event))
          .field("cat", name_of(event.kind))
          .field("ph", "X")
          .field("pid", event.stage)
          .field("tid", event.kind == StepEventKind::exchange ? 1 : 0)
          .field("ts", microseconds(event.begin))
          .field("dur", microseconds(event.duration));
      if (is_pass(event.kind)) {
        json.key("args")
            .begin_object()
            .field("micro_batch", event.micro_batch)
            .field("chunk", event.chunk)
            .end_object();
      }
      json.end_object();
    }
  }
  return json.end_array().end_object().take() + "\n";
}

std::string step_svg(const ScaleAnswer& answer) {
  const scale::Step* step = shown_step(answer);
  return step == nullptr || !answer.picture ? svg::Picture(900, 120).document() : StepDrawing(answer, *step).text();
}

}  // namespace forerun
