// forerun whatif: what an optimization would bring to a traced iteration.
#include <fmt/format.h>

#include "api/whatif.h"
#include "cli/command.h"
#include "ingest/kineto/kineto_reader.h"
#include "whatif/optimizations.h"

namespace forerun::cli {
namespace {

struct WhatIfOptions {
  std::string path;
  WhatIfQuestion question;
  bool all = false;
  bool json = false;
};

int what_if_command(const WhatIfOptions& options) {
  if (options.all == !options.question.applications.empty()) {
    fmt::print(stderr, "forerun: give either --apply NAME or --all; see `forerun whatif --help`\n");
    return kUsage;
  }
  for (const std::string& text : options.question.applications) {
    const auto application = whatif::parse_application(text);
    if (!application) return fail(application.error());
  }
  const auto knowledge = load_knowledge();
  if (!knowledge) return fail(knowledge.error());
  const auto trace = read_kineto(options.path);
  if (!trace) return fail(trace.error());
  if (options.all) {
    const auto ranking = rank_what_ifs(*trace, options.question, *knowledge);
    if (!ranking) return fail(ranking.error());
    for (const WhatIfAnswer& answer : *ranking) {
      if (options.json) fmt::print("{}\n", to_json(answer));
    }
    if (!options.json) fmt::print("{}", to_text(*ranking));
    return kDone;
  }
  const auto answer = what_if(*trace, options.question, *knowledge);
  if (!answer) return fail(answer.error());
  fmt::print("{}", options.json ? to_json(*answer) + "\n" : to_text(*answer));
  return kDone;
}

std::string whatif_footer() {
  std::string text =
      "Changes the trace's dependency graph and simulates it: before and after, with a range and what was assumed.\n"
      "  forerun whatif trace.json.gz --apply amp --apply fused_adam\n"
      "  forerun whatif trace.json.gz --apply faster_kernel:match=gemm,factor=2\n"
      "  forerun whatif trace.json.gz --all\n"
      "Optimizations:\n";
  for (const whatif::Optimization& optimization : whatif::optimizations()) {
    text += fmt::format("  {:<14} {}\n", optimization.name, optimization.summary);
  }
  return text +
         "Record shapes (record_shapes=True): kernel-time ratios are those of the cost model for each op's shape.";
}

}  // namespace

void add_whatif(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<WhatIfOptions>();
  CLI::App* verb = app.add_subcommand("whatif", "What an optimization would bring to a traced iteration");
  verb->add_option("TRACE", options->path, "A Kineto trace (.json, .gz, .zst)")->required();
  verb->add_option("--apply", options->question.applications, "NAME[:key=value,...]; several are applied in order")
      ->allow_extra_args(false);
  verb->add_flag("--all", options->all, "Every optimization alone, the largest gain first");
  verb->add_flag("--unprofiled", options->question.unprofiled, "Take out what the profiler cost the host");
  verb->add_option("--gpu", options->question.gpu, "The trace's GPU, where the file does not name it");
  verb->add_flag("--json", options->json, "One JSON object; with --all one a line");
  verb->footer(whatif_footer());
  verb->callback([options, &chosen] { chosen = [options] { return what_if_command(*options); }; });
}

}  // namespace forerun::cli
