#include "cli/forerun_program.h"

#include "cli/program.h"

namespace forerun::cli {

int forerun_program(int argc, char** argv) {
  return run_program(
      {.name = "forerun",
       .summary = "Tells how a deep-learning training run will go before it is run.",
       .examples = "Start with:\n"
                   "  forerun predict resnet50                       iteration time and memory on an H200\n"
                   "  forerun predict gpt2_small --gpu a100 --precision amp_bf16 --batch 16\n"
                   "  forerun fit gpt2_small --gpu a100              the largest batch that fits\n"
                   "  forerun compare resnet50 --batch 64            GPUs side by side\n"
                   "  forerun serve --open                           the page, in your browser\n"
                   "  forerun zoo                                    the models it knows\n"
                   "  forerun data summary data/h200                 what was measured\n",
       .verbs = {add_predict, add_fit,       add_compare, add_sweep,    add_check, add_zoo,         add_devices,
                 add_data,    add_lab_verbs, add_memory,  add_schedule, add_slurm, add_trace,       add_replay,
                 add_whatif,  add_scale,     add_monitor, add_serve,    add_store, add_installation}},
      argc, argv);
}

}  // namespace forerun::cli
