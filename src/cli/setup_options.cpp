#include "cli/setup_options.h"

namespace forerun::cli {

void add_setup_options(CLI::App& verb, SetupOptions& options, const std::string& default_precision) {
  verb.add_option("--precision", options.precision,
                  "fp32 (PyTorch's defaults), tf32 (also for matrix products), amp_bf16 or amp_fp16 (autocast, fp16 "
                  "with a GradScaler), bf16 or fp16 (weights too), amp_fp8 (autocast, linear layers in fp8); default " +
                      default_precision);
  verb.add_option(
      "--optimizer", options.optimizer,
      "NAME[:key=value,...]: sgd, momentum, adam, adamw, rmsprop, adagrad, adafactor, lion, adamw8bit, muon; keys impl "
      "(forloop, foreach, fused), "
      "momentum, weight_decay, lr; default momentum for images, adamw for tokens");
  verb.add_flag("--channels-last", options.channels_last, "Images and weights in channels-last layout");
  verb.add_option("--checkpoint", options.checkpoint,
                  "Activation checkpointing: none, block (a block keeps its inputs alone and runs twice) or selective "
                  "(it also keeps results of products and attention)");
  verb.add_option("--accumulate", options.accumulate, "Micro-batches of --batch samples before each update; default 1")
      ->check(CLI::Range(int64_t{1}, kMostAccumulated));
  verb.add_option(
      "--lora", options.lora,
      "RANK[:LAYER,LAYER,...][:dropout=P]: train adapters of that rank beside these linear layers alone (by "
      "the last part of their names, or all-linear); default: those of queries and values");
  verb.add_option("--freeze", options.freeze, "Parameters whose names hold this are not trained; repeatable")
      ->allow_extra_args(false);
  verb.add_option(
      "--quantize", options.quantize,
      "FORMAT[:double][:compute=TYPE]: frozen weights of linear layers in 4 bits (nf4, fp4) or 8 (int8), as "
      "bitsandbytes keeps them (QLoRA, load_in_4bit, load_in_8bit); needs --lora or --freeze");
  verb.add_option("--clip-grad", options.clip_norm, "Clip gradients to this norm before each update; 0: do not");
  verb.add_option(
      "--loop", options.loop,
      "Who runs the iterations: plain (a loop written by hand), trainer (transformers), lightning or accelerate; "
      "each waits, copies and keeps tensors in its own way (docs/loops.md)");
  verb.add_option(
      "--attention", options.attention,
      "sdpa (as PyTorch chooses), flash (its flash kernels alone) or eager (spelled out; models of the zoo)");
  verb.add_flag("--ema", options.ema, "Keep a moving average of the weights");
}

CLI::Option* add_compile_option(CLI::App& verb, SetupOptions& options) {
  return verb
      .add_option("--compile", options.compile,
                  "The model under torch.compile, in its mode default, reduce-overhead (CUDA graphs), max-autotune or "
                  "max-autotune-no-cudagraphs (docs/compile.md); without a mode: default")
      ->type_name("[MODE]")
      ->expected(0, 1)
      ->default_str("default");
}

void add_machine_option(CLI::App& verb, std::string& machine) {
  verb.add_option(
      "--machine", machine,
      "machine.json that `python -m forerun.calibrate` wrote on the machine to predict for, whose GPU is then "
      "the default; none: not even the one in the configuration folder (docs/calibrate.md)");
}

}  // namespace forerun::cli
