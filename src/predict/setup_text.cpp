#include "predict/setup_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/nearest.h"
#include "base/options_text.h"

namespace forerun {
namespace {

Error unknown_optimizer(const std::string& given) {
  const std::vector<std::string> known = {"sgd",     "momentum",  "adam", "adamw",     "rmsprop",
                                          "adagrad", "adafactor", "lion", "adamw8bit", "muon"};
  return {fmt::format("there is no optimizer '{}'", given), "", did_you_mean(given, known)};
}

bool has_one_form(OptimizerKind kind) {
  return kind == OptimizerKind::adafactor || kind == OptimizerKind::lion || kind == OptimizerKind::adamw_8bit ||
         kind == OptimizerKind::muon;
}

}  // namespace

std::vector<std::string> SetupText::given() const {
  std::vector<std::string> options;
  const auto note = [&](bool there, const char* option) {
    if (there) options.emplace_back(option);
  };
  note(!precision.empty(), "--precision");
  note(!optimizer.empty(), "--optimizer");
  note(channels_last, "--channels-last");
  note(!checkpoint.empty(), "--checkpoint");
  note(accumulate != 1, "--accumulate");
  note(!lora.empty(), "--lora");
  note(!freeze.empty(), "--freeze");
  note(!quantize.empty(), "--quantize");
  note(clip_norm.has_value(), "--clip-grad");
  note(ema, "--ema");
  note(!loop.empty(), "--loop");
  note(!attention.empty(), "--attention");
  note(!compile.empty(), "--compile");
  return options;
}

namespace {

// Words whose text is looked at by parse_setup.
struct TextWord {
  const char* name;
  std::string SetupText::*text;
};
constexpr TextWord kTextWords[] = {{"precision", &SetupText::precision},   {"optimizer", &SetupText::optimizer},
                                   {"checkpoint", &SetupText::checkpoint}, {"lora", &SetupText::lora},
                                   {"quantize", &SetupText::quantize},     {"loop", &SetupText::loop},
                                   {"attention", &SetupText::attention},   {"compile", &SetupText::compile}};

struct FlagWord {
  const char* name;
  bool SetupText::*flag;
};
constexpr FlagWord kFlagWords[] = {{"channels_last", &SetupText::channels_last}, {"ema", &SetupText::ema}};

Status read_flag(const std::string& word, const std::string& value, bool& flag) {
  const auto is = [&](const char* text) { return edit_distance(value, text) == 0; };  // whatever the case
  flag = is("yes") || is("true") || is("1");
  if (flag || is("no") || is("false") || is("0")) return {};
  return Error{fmt::format("{} cannot be '{}'", word, value), "", "write yes or no"};
}

}  // namespace

const std::vector<std::string>& setup_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all = {"accumulate", "freeze", "clip_grad"};
    for (const TextWord& word : kTextWords) all.emplace_back(word.name);
    for (const FlagWord& word : kFlagWords) all.emplace_back(word.name);
    return all;
  }();
  return words;
}

Status read_setup_word(const std::string& word, const std::string& value, SetupText& text) {
  if (value.empty()) return {};
  for (const TextWord& known : kTextWords) {
    if (word != known.name) continue;
    text.*known.text = value;
    return {};
  }
  for (const FlagWord& known : kFlagWords) {
    if (word == known.name) return read_flag(word, value, text.*known.flag);
  }
  if (word == "freeze") {
    for (const std::string_view part : split_list(value, ";")) {
      if (!part.empty()) text.freeze.emplace_back(part);
    }
    return {};
  }
  const auto number = number_in(value);
  if (word == "accumulate") {
    const bool whole = number && *number >= 1 && *number <= kMostAccumulated && *number == std::floor(*number);
    if (!whole) {
      return Error{fmt::format("accumulate cannot be '{}'", value), "",
                   fmt::format("give 1 to {} micro-batches", kMostAccumulated)};
    }
    text.accumulate = static_cast<int64_t>(*number);
    return {};
  }
  if (word == "clip_grad") {
    if (!number) return Error{fmt::format("clip_grad cannot be '{}'", value), "", "give 1.0, or 0 for no clipping"};
    text.clip_norm = *number;
    return {};
  }
  return Error{fmt::format("'{}' does not say how a model is trained", word), "", did_you_mean(word, setup_words())};
}

Result<KeyValues> parse_settings(const std::vector<std::string>& texts, const KeyValues& taken) {
  const OptionGrammar grammar{"--set", "write KEY=VALUE, for instance image=384"};
  KeyValues settings;
  for (const std::string& text : texts) {
    Result<KeyValue> setting = parse_key_value(text, grammar);
    if (!setting) return setting.error();
    const auto same = [&](const KeyValue& other) { return other.first == setting->first; };
    if (const auto other = std::find_if(taken.begin(), taken.end(), same); other != taken.end()) {
      return Error{fmt::format("{} is given by {} and by --set {}", setting->first, other->second, text), "--set",
                   "give it in one of them"};
    }
    if (Status status = add_once(std::move(*setting), settings, grammar); !status) return status.error();
  }
  return settings;
}

Result<Checkpointing> parse_checkpointing(const std::string& text) {
  if (const auto known = checkpointing_named(text)) return *known;
  return Error{fmt::format("checkpointing cannot be '{}'", text), "--checkpoint", "give none, block or selective"};
}

namespace {

Result<TrainingLoop> parse_loop(const std::string& text) {
  if (const auto known = training_loop_named(text)) return *known;
  return Error{fmt::format("there is no training loop '{}'", text), "--loop",
               did_you_mean(text, {"plain", "trainer", "lightning", "accelerate"})};
}

Result<Attention> parse_attention(const std::string& text) {
  if (text == "fused") return Attention::sdpa;
  if (text == "plain") return Attention::eager;
  if (const auto known = attention_named(text)) return *known;
  return Error{fmt::format("attention cannot be computed by '{}'", text), "--attention",
               did_you_mean(text, {"sdpa", "flash", "eager"})};
}

}  // namespace

Result<LoraSpec> parse_lora(const std::string& text) {
  const char* remedy = "write RANK[:LAYER,LAYER,...][:dropout=P], for instance 16 or 16:q_proj,v_proj or 8:all-linear";
  constexpr double kMostRank = 1 << 20;
  LoraSpec spec;
  const std::vector<std::string_view> parts = split_list(text, ":");
  const auto rank = number_in(parts[0]);
  if (!rank || *rank < 1 || *rank > kMostRank || *rank != std::floor(*rank)) {
    return Error{fmt::format("adapters cannot have the rank '{}'", parts[0]), "--lora", remedy};
  }
  spec.rank = static_cast<int64_t>(*rank);
  for (size_t i = 1; i < parts.size(); ++i) {
    if (const auto option = split_key_value(parts[i])) {
      const auto dropout = number_in(option->second);
      if (option->first != "dropout" || !dropout || *dropout < 0 || *dropout >= 1) {
        return Error{fmt::format("'{}' says nothing about adapters", parts[i]), "--lora", remedy};
      }
      spec.dropout = *dropout;
      continue;
    }
    for (const std::string_view target : split_list(parts[i], ",")) {
      if (target.empty()) return Error{fmt::format("'{}' names a layer without a name", text), "--lora", remedy};
      spec.targets.emplace_back(target);
    }
  }
  return spec;
}

Result<OptimizerSpec> parse_optimizer(const std::string& text) {
  const OptionGrammar grammar{"--optimizer", "write NAME[:key=value,...], for instance sgd:momentum=0.9,impl=fused"};
  const auto named = parse_named_options(text, grammar);
  if (!named) return named.error();
  OptimizerSpec spec;
  if (named->name == "momentum") {
    spec.momentum = 0.9;
  } else if (const auto kind = optimizer_named(named->name); kind && *kind != OptimizerKind::other) {
    spec.kind = *kind;
  } else {
    return unknown_optimizer(named->name);
  }
  OptionReader reader(named->options, {"--optimizer " + text, grammar.remedy});
  constexpr double kMost = std::numeric_limits<double>::max();
  if (has_one_form(spec.kind)) spec.impl = OptimizerImpl::forloop;
  const std::vector<OptimizerImpl> impls = {OptimizerImpl::forloop, OptimizerImpl::foreach, OptimizerImpl::fused};
  std::vector<std::string> words;
  for (const OptimizerImpl impl : impls) words.emplace_back(name_of(impl));
  const auto own = static_cast<size_t>(std::find(impls.begin(), impls.end(), spec.impl) - impls.begin());
  spec.impl = impls[reader.word("impl", own, words)];
  spec.momentum = reader.number("momentum", spec.momentum, 0, kMost);
  spec.weight_decay = reader.number("weight_decay", spec.weight_decay, 0, kMost);
  spec.learning_rate = reader.number("lr", spec.learning_rate, 0, kMost);
  if (const Status status = reader.status(); !status) return status.error();
  if (spec.kind == OptimizerKind::rmsprop && spec.impl == OptimizerImpl::fused) {
    return Error{"RMSprop has no fused implementation", "--optimizer", "use impl=foreach or impl=forloop"};
  }
  if (has_one_form(spec.kind) && spec.impl != OptimizerImpl::forloop) {
    return Error{fmt::format("{} goes tensor by tensor", name_of(spec.kind)), "--optimizer", "leave impl out"};
  }
  return spec;
}

Result<TrainingSetup> parse_setup(const SetupText& text) {
  TrainingSetup setup;
  setup.channels_last = text.channels_last;
  if (!text.precision.empty()) {
    const Result<Precision> precision = parse_precision(text.precision);
    if (!precision) return precision.error();
    setup.precision = *precision;
  }
  if (!text.optimizer.empty()) {
    const Result<OptimizerSpec> optimizer = parse_optimizer(text.optimizer);
    if (!optimizer) return optimizer.error();
    setup.optimizer = *optimizer;
  }
  if (!text.checkpoint.empty()) {
    const Result<Checkpointing> checkpointing = parse_checkpointing(text.checkpoint);
    if (!checkpointing) return checkpointing.error();
    setup.checkpointing = *checkpointing;
  }
  if (!text.lora.empty()) {
    Result<LoraSpec> lora = parse_lora(text.lora);
    if (!lora) return lora.error();
    setup.lora = std::move(*lora);
  }
  if (!text.quantize.empty()) {
    const Result<QuantizeSpec> quantize = parse_quantize(text.quantize);
    if (!quantize) return quantize.error();
    setup.quantize = *quantize;
  }
  if (!text.loop.empty()) {
    const Result<TrainingLoop> loop = parse_loop(text.loop);
    if (!loop) return loop.error();
    setup.loop = *loop;
  }
  if (!text.attention.empty()) {
    const Result<Attention> attention = parse_attention(text.attention);
    if (!attention) return attention.error();
    setup.attention = *attention;
  }
  if (!text.compile.empty()) {
    const Result<CompileMode> mode = parse_compile_mode(text.compile);
    if (!mode) return mode.error();
    setup.compile = *mode;
  }
  const double clip_norm = text.clip_norm.value_or(rules_of(setup.loop).clip_norm);
  if (!(clip_norm >= 0) || !std::isfinite(clip_norm)) {
    return Error{fmt::format("gradients cannot be clipped to a norm of {}", clip_norm), "--clip-grad",
                 "give 1.0, or 0 for no clipping"};
  }
  setup.freeze = text.freeze;
  setup.accumulate = text.accumulate;
  setup.clip_norm = clip_norm;
  setup.ema = text.ema;
  return setup;
}

}  // namespace forerun
