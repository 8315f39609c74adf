// How a model is trained, as users write it: the names of a precision and of an optimizer with its options, and so on.
//
//   precision amp_bf16     optimizer adamw     optimizer sgd:momentum=0.9,impl=fused     lora 16:q_proj,v_proj     quantize nf4:double
//
// Parsed once, where the user's words come in (options, cells of a table, a request); a TrainingSetup travels from there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/options_text.h"
#include "base/result.h"
#include "graph/training_run.h"

namespace forerun {

inline constexpr int64_t kMostAccumulated = 4096;  // micro-batches

struct SetupText {
  std::string precision;  // empty: fp32
  std::string optimizer;  // empty: see ModelRequest::default_optimizer
  bool channels_last = false;
  std::string checkpoint;  // empty: none
  std::string lora;        // empty: all weights are trained
  std::vector<std::string> freeze;
  std::string quantize;             // empty: weights as the precision has them
  int64_t accumulate = 1;           // at most kMostAccumulated
  std::optional<double> clip_norm;  // nothing: as the loop does; 0: gradients are not clipped
  bool ema = false;
  std::string loop;                                      // empty: plain
  std::string attention;                                 // empty: sdpa
  std::string compile;                                   // empty: the model runs eagerly
  [[nodiscard]] std::vector<std::string> given() const;  // the options that say something
  [[nodiscard]] bool any() const { return !given().empty(); }
};

// The names of these as columns of a table or keys of a statement have them: "clip_grad".
const std::vector<std::string>& setup_words();
// Takes up what one of them says: "yes" or "no" of a flag, the parts of `freeze` parted by ';'. No text says nothing. An Error where
// there is no such word, or where it is one of a number or of yes and no and the text is none.
Status read_setup_word(const std::string& word, const std::string& value, SetupText& text);

// KEY=VALUE of every --set, in order. A key without a value, given twice, or given by another option too (`taken`, with
// the option's name) is an Error.
Result<KeyValues> parse_settings(const std::vector<std::string>& texts, const KeyValues& taken = {});

// Unknown names are answered with the known ones.
Result<TrainingSetup> parse_setup(const SetupText& text);

Result<Checkpointing> parse_checkpointing(const std::string& text);

// RANK[:TARGET,TARGET,...][:dropout=P]
Result<LoraSpec> parse_lora(const std::string& text);

// NAME[:key=value,...]; "momentum" is sgd with a momentum of 0.9.
Result<OptimizerSpec> parse_optimizer(const std::string& text);

}  // namespace forerun
