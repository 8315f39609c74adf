// forerun store: what was kept, found and moved.
#include "store/store.h"

#include <fmt/core.h>

#include <iostream>

#include "base/json_writer.h"
#include "base/small_file.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "report/table.h"
#include "serve/kept_answers.h"
#include "store/result_json.h"

namespace forerun::cli {
namespace {

struct StoreVerb {
  std::string store, to, id, file = "-";
  std::vector<std::string> ids, tags;
  store::ResultFilter filter;
  std::optional<double> iter_ms;
  std::optional<int64_t> peak_reserved;
  std::string machine;
  bool json = false;
};

using OpenStore = std::unique_ptr<store::Store>;

std::string number_or_dash(const std::optional<double>& number, const char* unit) {
  return number ? fmt::format("{:.3g} {}", *number, unit) : "-";
}

std::string tags_text(const store::Tags& tags) {
  std::string text;
  for (const auto& [name, content] : tags)
    text += (text.empty() ? "" : " ") + name + (content.empty() ? "" : "=" + content);
  return text;
}

int list_results(const StoreVerb& verb, store::Store& store) {
  const auto page = store.list(verb.filter);
  if (!page) return fail(page.error());
  if (verb.json) {
    fmt::print("{}\n", store::page_json(*page));
    return kDone;
  }
  if (page->rows.empty()) {
    fmt::print("nothing that matches is kept in {}\n", store.name());
    return kDone;
  }
  Table table({"id", "when (UTC)", "kind", "model", "GPU", "batch", "iteration", "fits", "tags"});
  for (const size_t column : {1, 2, 3, 4, 8}) table.align_left(column);
  for (const store::ResultRow& row : page->rows) {
    const store::ResultFigures& figures = row.figures;
    std::string when = store::iso_time(row.created).substr(0, 19);
    when[10] = ' ';
    table.add({row.id.substr(0, 12), when, row.kind, figures.model.value_or("-"), figures.gpu.value_or("-"),
               figures.batch ? fmt::format("{}", *figures.batch) : "-", number_or_dash(figures.iter_ms, "ms"),
               figures.fits ? (*figures.fits ? "yes" : "no") : "-", tags_text(row.tags)});
  }
  fmt::print("{}", table.text(""));
  if (!page->next.empty()) fmt::print("more: --after {}\n", page->next);
  return kDone;
}

int show_result(const StoreVerb& verb, store::Store& store) {
  const auto id = store.result_beginning(verb.id);
  if (!id) return fail(id.error());
  const auto result = store.result(*id);
  if (!result) return fail(result.error());
  if (!*result) return fail({"is gone", *id, ""});
  const auto measured = store.measurements(*id);
  if (!measured) return fail(measured.error());
  fmt::print("{}\n", verb.json ? store::result_json(**result, *measured) : (*result)->answer);
  return kDone;
}

int add_answers(const StoreVerb& verb, store::Store& store) {
  constexpr size_t kLargest = size_t{64} << 20;
  std::string text;
  if (verb.file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    auto read = read_small_file(verb.file, {kLargest, "give what a verb printed with --json"});
    if (!read) return fail(read.error());
    text = std::move(*read);
  }
  const auto answers = serve::kept_answers(text, verb.file == "-" ? "standard input" : verb.file);
  if (!answers) return fail(answers.error());
  store::Tags tags;
  for (const std::string& tag : verb.tags) {
    const size_t equals = tag.find('=');
    if (equals == 0) return fail({"a tag needs a name", tag, "write NAME or NAME=VALUE"});
    tags[tag.substr(0, equals)] = equals == std::string::npos ? "" : tag.substr(equals + 1);
  }
  const auto ids = store.keep_all(*answers, tags);
  if (!ids) return fail(ids.error());
  for (const std::string& id : *ids) fmt::print("{}\n", id);
  return kDone;
}

int tag_result(const StoreVerb& verb, store::Store& store, bool away) {
  const auto id = store.result_beginning(verb.id);
  if (!id) return fail(id.error());
  for (const std::string& tag : verb.tags) {
    const size_t equals = tag.find('=');
    const std::string name = tag.substr(0, equals);
    if (name.empty()) return fail({"a tag needs a name", tag, "write NAME or NAME=VALUE"});
    const auto done =
        away ? store.untag(*id, name) : store.tag(*id, name, equals == std::string::npos ? "" : tag.substr(equals + 1));
    if (!done) return fail(done.error());
    if (!*done) return fail({fmt::format("has no tag '{}'", name), *id, "`forerun store list` shows them"});
  }
  return kDone;
}

int measure_result(const StoreVerb& verb, store::Store& store) {
  const auto id = store.result_beginning(verb.id);
  if (!id) return fail(id.error());
  if (!verb.iter_ms && !verb.peak_reserved)
    return fail({"says nothing", "measure", "give --iter-ms, --peak-reserved or both"});
  const auto done = store.measure(
      {.result = *id, .iter_ms = verb.iter_ms, .peak_reserved = verb.peak_reserved, .machine = verb.machine});
  return done ? kDone : fail(done.error());
}

int delete_results(const StoreVerb& verb, store::Store& store) {
  std::vector<std::string> ids;
  for (const std::string& beginning : verb.ids) {
    const auto id = store.result_beginning(beginning);
    if (!id) return fail(id.error());
    ids.push_back(*id);
  }
  for (const std::string& id : ids) {
    if (const auto done = store.remove_result(id); !done) return fail(done.error());
  }
  return kDone;
}

int show_counts(const StoreVerb& verb, store::Store& store) {
  const auto counts = store.counts();
  if (!counts) return fail(counts.error());
  if (!verb.json) {
    fmt::print("{}: {} results, {} tags, {} measurements, {} uploads, {} jobs, {} prices\n", store.name(),
               counts->results, counts->tags, counts->measurements, counts->uploads, counts->jobs, counts->prices);
    return kDone;
  }
  JsonWriter json;
  json.begin_object().field("schema", "forerun.store.info/1").field("store", store.name());
  json.field("results", counts->results).field("tags", counts->tags).field("measurements", counts->measurements);
  json.field("uploads", counts->uploads).field("jobs", counts->jobs).field("prices", counts->prices);
  fmt::print("{}\n", json.end_object().take());
  return kDone;
}

int copy_store(const StoreVerb& verb, store::Store& from) {
  const auto to = store::Store::open(verb.to, {.create = true});
  if (!to) return fail(to.error());
  const auto counts = from.counts();
  if (!counts) return fail(counts.error());
  if (const Status status = from.copy_to(**to, CommandWork().control()); !status.ok()) return fail(status.error());
  fmt::print("copied {} results to {}{}\n", counts->results, (*to)->name(), (*to)->is_new() ? " (new)" : "");
  if (counts->uploads > 0)
    fmt::print("{} uploads stay with {}: they are files beside it\n", counts->uploads, from.name());
  return kDone;
}

}  // namespace

void add_store(CLI::App& app, Run& chosen) {
  auto verb = std::make_shared<StoreVerb>();
  CLI::App* group = app.add_subcommand("store", "Results that were kept: list, show, tag, measure, add, delete, copy");
  group->require_subcommand(1);
  const auto sub = [&](const char* name, const char* does, bool create,
                       const std::function<int(const StoreVerb&, store::Store&)>& run) {
    CLI::App* one = group->add_subcommand(name, does);
    one->add_option("STORE", verb->store, "A store's file, or postgresql://...")->required();
    one->callback([verb, create, run, &chosen] {
      chosen = [verb, create, run] {
        const auto store = store::Store::open(verb->store, {.create = create});
        return store ? run(*verb, **store) : fail(store.error());
      };
    });
    return one;
  };
  const auto json = [&](CLI::App* one) { one->add_flag("--json", verb->json, "One JSON object on standard output"); };
  const auto id = [&](CLI::App* one) {
    one->add_option("ID", verb->id, "Of a result: its first digits are enough, or `last`")->required();
  };

  CLI::App* list = sub("list", "What was kept, newest first", false, list_results);
  list->add_option("--kind", verb->filter.kind, "Only answers of this question, as predict");
  list->add_option("--model", verb->filter.model, "Only of this model");
  list->add_option("--gpu", verb->filter.gpu, "Only on this GPU, by its full name");
  list->add_option("--tag", verb->filter.tag, "Only with this tag, NAME or NAME=VALUE");
  list->add_option("--after", verb->filter.after, "The page behind this place, which the page before has printed");
  list->add_option("--limit", verb->filter.limit, "At most so many; default 50")->check(CLI::Range(1, 1000));
  json(list);
  CLI::App* show = sub("show", "A kept answer, as --json printed it", false, show_result);
  id(show);
  show->add_flag("--json", verb->json, "With its question, tags and measurements");
  CLI::App* add = sub("add", "Keep what a verb printed with --json; prints the ids", true, add_answers);
  add->add_option("FILE", verb->file, "Its output; default: standard input");
  add->add_option("--tag", verb->tags, "NAME or NAME=VALUE; repeatable")->allow_extra_args(false);
  CLI::App* tag = sub("tag", "Tag a result", false, [](const auto& v, auto& s) { return tag_result(v, s, false); });
  id(tag);
  tag->add_option("TAG", verb->tags, "NAME or NAME=VALUE")->required();
  CLI::App* untag =
      sub("untag", "Take tags away", false, [](const auto& v, auto& s) { return tag_result(v, s, true); });
  id(untag);
  untag->add_option("TAG", verb->tags, "NAME")->required();
  CLI::App* measure = sub("measure", "Note what the run really took, beside its forecast", false, measure_result);
  id(measure);
  measure->add_option("--iter-ms", verb->iter_ms, "Milliseconds an iteration")->check(CLI::Range(1e-9, 1e12));
  measure->add_option("--peak-reserved", verb->peak_reserved, "Bytes that the allocator reserved at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 50));
  measure->add_option("--machine", verb->machine, "Where it ran, in your own words");
  CLI::App* remove = sub("delete", "Remove results, with their tags and measurements", false, delete_results);
  remove->add_option("ID", verb->ids, "Of results: their first digits are enough")->required();
  CLI::App* copy =
      sub("copy", "Add all results of a store to another, which is made where it is not there", false, copy_store);
  copy->add_option("TO", verb->to, "A store's file, or postgresql://...")->required();
  json(sub("info", "How much is kept", false, show_counts));
  group->footer(
      "Examples:\n"
      "  forerun store add runs.db answer.json --tag git=4f2a\n"
      "  forerun store list runs.db --model resnet50\n"
      "  forerun store measure runs.db 4f2a91 --iter-ms 51.3\n"
      "  forerun store copy runs.db postgresql://me@db/forerun\n"
      "A password stands in ~/.pgpass or PGPASSWORD better than in the name.");
}

}  // namespace forerun::cli
