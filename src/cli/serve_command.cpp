// forerun serve: the page and the HTTP API on this machine.
#include "serve/serve.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/json_writer.h"
#include "base/stop_on_signals.h"
#include "cli/command.h"
#include "serve/worker.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace forerun::cli {
namespace {

struct ServeVerb {
  serve::ServeOptions options;
  bool open = false;
  bool json = false;
};

// The user's browser, by the desktop's own command.
void open_browser(const std::string& link) {
  std::string program = "xdg-open", address = link;
  char* arguments[] = {program.data(), address.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  if (posix_spawnp(&child, "xdg-open", &actions, nullptr, arguments, environ) != 0) {
    fmt::print(stderr, "forerun: there is no xdg-open here; open the link yourself\n");
  }
  posix_spawn_file_actions_destroy(&actions);
}

void tell(const ServeVerb& verb, const serve::Serving& serving) {
  if (verb.json) {
    JsonWriter json;
    json.begin_object().field("schema", "forerun.serve/1").field("address", serving.address);
    json.field("link", serving.link).field("token", serving.token).field("store", serving.store);
    fmt::print("{}\n", json.field("new_store", serving.new_store).end_object().take());
  } else {
    fmt::print("{}\n", serving.link);
  }
  std::fflush(stdout);
  fmt::print(stderr, "forerun: results are kept in {}{}\n", serving.store, serving.new_store ? " (new)" : "");
  if (!serve::is_loopback(verb.options.host)) {
    fmt::print(stderr,
               "forerun: other machines can reach this server at {}, and what is said to it can be read on the way: "
               "HTTP is not encrypted. Whoever has the link may ask\n",
               serving.address);
  }
  if (!serving.bounded_workers) {
    fmt::print(stderr, "forerun: this kernel has no Landlock: what reads uploads is bounded by its own checks alone\n");
  }
  fmt::print(stderr, "forerun: Ctrl-C ends it\n");
  if (verb.open) open_browser(serving.link);
}

// Where results go that nobody named a place for: said aloud when it is used.
Result<std::string> usual_store() {
  const std::string folder = serve::user_data_folder();
  if (folder.empty()) return Error{"there is no home to keep results in", "HOME", "name a store: --store FILE"};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{"cannot be made: " + error.message(), folder, "name a store: --store FILE"};
  return folder + "/forerun.db";
}

// What is wrong with "99999"; empty where nothing is.
std::string fault_of_port(const std::string& text) {
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [read, fault] = std::from_chars(text.data(), end, port);
  if (fault == std::errc() && read == end) return "";
  return "'" + text + "' is no port: give 1 to 65535, or leave it out for a free one";
}

int run_serve(ServeVerb& verb) {
  if (verb.options.store.empty()) {
    const auto usual = usual_store();
    if (!usual) return fail(usual.error());
    verb.options.store = *usual;
  }
  verb.options.program = "/proc/self/exe";
  const StopOnSignals stop({SIGINT, SIGTERM});
  const Status served =
      serve::serve(verb.options, stop.token(), [&](const serve::Serving& serving) { tell(verb, serving); });
  if (!served.ok()) return fail(served.error());
  fmt::print(stderr, "forerun: ended\n");
  return kDone;
}

}  // namespace

void add_serve(CLI::App& app, Run& chosen) {
  auto verb_options = std::make_shared<ServeVerb>();
  CLI::App* verb =
      app.add_subcommand("serve", "The page in your browser, and an HTTP API: on this machine, with a token");
  serve::ServeOptions& options = verb_options->options;
  verb->add_option("--port", options.port, "Port, 1 to 65535; default: a free one")->check(fault_of_port);
  verb->add_option("--host", options.host, "Address to listen at; default 127.0.0.1, which only this machine reaches");
  verb->add_option("--store", options.store,
                   "Where results are kept: a file, or postgresql://...; default: forerun.db in your data folder");
  verb->add_option("--allow-host", options.allow_hosts, "A name that the server may be called by; repeatable")
      ->allow_extra_args(false);
  verb->add_flag("--open", verb_options->open, "Open the page in your browser");
  verb->add_flag("--json", verb_options->json, "Link, token and store as one JSON object on standard output");
  verb->footer(
      "Prints a link with a token: whoever opens it may ask. Nothing else is let in, and no other page.\n"
      "Examples:\n"
      "  forerun serve --open\n"
      "  forerun serve --port 8080 --store runs.db\n"
      "  forerun serve --store postgresql://me@db/forerun     several people, one history\n"
      "Scripts send the token, as in\n"
      "  curl -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \\\n"
      "    -d '{\"model\": \"resnet50\", \"batch\": 64}' http://127.0.0.1:8080/api/v1/predict\n"
      "docs/serve.md has the routes.");
  verb->callback([verb_options, &chosen] { chosen = [verb_options] { return run_serve(*verb_options); }; });

  // What the server starts; nobody types it.
  auto worker = std::make_shared<serve::WorkerOptions>();
  CLI::App* hidden = app.add_subcommand("serve-worker", "Answers questions for forerun serve")->group("");
  hidden->add_option("--uploads", worker->uploads, "Folder of uploads");
  hidden->add_option("--memory", worker->memory_bytes, "Bytes that it may take");
  hidden->callback([worker, &chosen] {
    chosen = [worker]() -> int {
      const Status status = serve::run_worker(*worker);
      return status.ok() ? kDone : fail(status.error());
    };
  });
}

}  // namespace forerun::cli
