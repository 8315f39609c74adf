// Verbs and options are written into the script. Names of GPUs and models are asked of the program when they are needed,
// so that a file of one's own devices and later versions complete too.
#include "cli/completions.h"

#include <fmt/format.h>

#include <vector>

#include "base/nearest.h"

namespace forerun::cli {
namespace {

struct VerbWords {
  std::string path;  // "predict", "data summary"
  std::string summary;
  std::vector<const CLI::Option*> options;
  std::vector<const CLI::App*> verbs;
};

void collect(const CLI::App& app, const std::string& path, std::vector<VerbWords>& out) {
  VerbWords words{path, app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional() && !option->get_group().empty()) words.options.push_back(option);
  }
  for (const CLI::App* verb : app.get_subcommands({})) words.verbs.push_back(verb);
  out.push_back(words);
  for (const CLI::App* verb : words.verbs) {
    collect(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), out);
  }
}

std::vector<std::string> names_of(const VerbWords& words) {
  std::vector<std::string> names;
  for (const CLI::App* verb : words.verbs) names.push_back(verb->get_name());
  for (const CLI::Option* option : words.options) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

// bash and zsh share a function that finds the verb among the words before the cursor.
constexpr const char* kBashHead = R"sh(# Completion of forerun for bash, and for zsh through bashcompinit.
_forerun() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case " $(_forerun_words "$path") " in
      *" $word "*) [[ $word == -* ]] || path="${path:+$path }$word" ;;
    esac
  done
  case $previous in
    --gpu)
      COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" completions --list gpus 2>/dev/null)" -- "$current"))
      return ;;
  esac
  COMPREPLY=($(compgen -W "$(_forerun_words "$path")" -- "$current"))
  case $path in
    predict | fit | sweep | whatif | scale)
      if [[ $current != -* ]]; then
        COMPREPLY+=($(compgen -W "$("${COMP_WORDS[0]}" completions --list models 2>/dev/null)" -- "$current"))
      fi ;;
  esac
}
_forerun_words() {
  case $1 in
)sh";

std::string bash_script(const std::vector<VerbWords>& all) {
  std::string text = kBashHead;
  for (const VerbWords& words : all)
    text += fmt::format("    '{}') echo '{}' ;;\n", words.path, joined(names_of(words)));
  return text + "  esac\n}\ncomplete -o default -F _forerun forerun\n";
}

std::string zsh_script(const std::vector<VerbWords>& all) {
  return "#compdef forerun\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(all);
}

// 'text' as fish quotes it.
std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

// True where the last of `path`'s words was given.
std::string fish_condition(const std::string& path) {
  if (path.empty()) return "__fish_use_subcommand";
  return "__fish_seen_subcommand_from " + path.substr(path.rfind(' ') + 1);
}

std::string fish_script(const std::vector<VerbWords>& all) {
  std::string text = "# Completion of forerun for fish.\n";
  for (const VerbWords& words : all) {
    const std::string when = fish_quoted(fish_condition(words.path));
    for (const CLI::App* verb : words.verbs) {
      text += fmt::format("complete -c forerun -n {} -a {} -d {}\n", when, verb->get_name(),
                          fish_quoted(verb->get_description()));
    }
    for (const CLI::Option* option : words.options) {
      for (const std::string& name : option->get_lnames()) {
        const std::string values = name == "gpu" ? " -xa '(forerun completions --list gpus)'" : "";
        text += fmt::format("complete -c forerun -n {} -l {}{}{} -d {}\n", when, name,
                            option->get_items_expected_max() > 0 && values.empty() ? " -r" : "", values,
                            fish_quoted(option->get_description()));
      }
    }
  }
  return text;
}

}  // namespace

Result<std::string> completion_script(const CLI::App& program, std::string_view shell) {
  std::vector<VerbWords> all;
  collect(program, "", all);
  if (shell == "bash") return bash_script(all);
  if (shell == "zsh") return zsh_script(all);
  if (shell == "fish") return fish_script(all);
  return Error{fmt::format("there are no completions for '{}'", shell), "SHELL",
               did_you_mean(std::string(shell), {"bash", "zsh", "fish"})};
}

}  // namespace forerun::cli
