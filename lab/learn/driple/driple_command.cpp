#include "lab/learn/driple/driple_command.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "lab/dataset/driple/driple_rows.h"
#include "lab/dataset/driple/resource_file.h"
#include "lab/learn/training_session.h"

namespace forerun::learn {
namespace {

constexpr const char* kDripleUsage =
    "forerun-train driple --cache FILE [--study NAME] [--name NAME] [--setting P1w2-10G] [--samples N]\n"
    "  [--all-settings yes] [--on test|families|models] [--folds K [--fold I]] [--epochs N] [--batch N] [--rate X]\n"
    "  [--patience N] [--validation SHARE] [--seed N] [--device D] [--seconds S] [--set NAME=VALUE]...\n"
    "  [--pretrain EPOCHS | --from FOLDER] [--tune-epochs N] [--tune-rate X] [--tune-validation SHARE]\n"
    "  [--keep-pretrained FOLDER] [--out FOLDER]\n";

struct DripleCommand {
  std::string cache, out;
  ResourceJob job;
};

template <class T>
bool number_from(const std::string& text, T& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

template <class T>
bool number_from(const std::string& text, std::optional<T>& into) {
  T value{};
  if (!number_from(text, value)) return false;
  into = value;
  return true;
}

bool text_from(const std::string& text, std::string& into) {
  into = text;
  return !text.empty();
}

bool set_training(const std::string& option, const std::string& value, TrainOptions& options) {
  if (option == "--epochs") return number_from(value, options.epochs);
  if (option == "--batch") return number_from(value, options.batch);
  if (option == "--rate") return number_from(value, options.learning_rate);
  if (option == "--patience") return number_from(value, options.patience);
  if (option == "--validation") return number_from(value, options.validation);
  if (option == "--seed") return number_from(value, options.seed);
  if (option == "--seconds") return number_from(value, options.seconds);
  if (option == "--device") return text_from(value, options.device);
  if (option != "--set") return false;
  const size_t equals = value.find('=');
  if (equals == std::string::npos) return false;
  options.settings[value.substr(0, equals)] = value.substr(equals + 1);
  return true;
}

bool set_job(const std::string& option, const std::string& value, DripleCommand& command) {
  ResourceJob& job = command.job;
  ResourceRecipe& recipe = job.recipe;
  if (option == "--cache") return text_from(value, command.cache);
  if (option == "--out") return text_from(value, command.out);
  if (option == "--study") return text_from(value, job.study);
  if (option == "--name") return text_from(value, job.name);
  if (option == "--setting") return text_from(value, job.setting);
  if (option == "--samples") return number_from(value, job.samples);
  if (option == "--folds") return number_from(value, job.folds);
  if (option == "--fold") return number_from(value, job.fold);
  if (option == "--from") return text_from(value, recipe.from);
  if (option == "--keep-pretrained") return text_from(value, recipe.keep_pretrained);
  if (option == "--tune-epochs") return number_from(value, recipe.tune_epochs);
  if (option == "--tune-rate") return number_from(value, recipe.tune_rate);
  if (option == "--tune-validation") return number_from(value, recipe.tune_validation);
  if (option == "--pretrain") return recipe.pretrain = number_from(value, recipe.pretrain_epochs);
  if (option == "--all-settings") {
    job.all_settings = value == "yes";
    return value == "yes" || value == "no";
  }
  if (option == "--on") {
    job.on = value == "families" ? JudgedOn::family_folds
             : value == "models" ? JudgedOn::model_folds
                                 : JudgedOn::test_families;
    return value == "families" || value == "models" || value == "test";
  }
  return set_training(option, value, recipe.options);
}

int fail_driple(const Error& error) {
  fmt::print(stderr, "forerun-train: {}\n", error.message());
  return 1;
}

}  // namespace

int driple_command(const std::vector<std::string>& words) {
  DripleCommand command;
  command.job.study = "training";
  command.job.setting = "P1w2-10G";
  command.job.recipe.options.validation = 0.2;
  command.job.recipe.options.device = "cpu";
  for (size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 >= words.size() || !set_job(words[i], words[i + 1], command)) {
      fmt::print(stderr, "forerun-train: '{}' is no option, or its value is missing or no good\n{}", words[i],
                 kDripleUsage);
      return 2;
    }
  }
  if (const Status status = check_options(command.job.recipe.options); !status.ok()) {
    return fail_driple(status.error());
  }
  const auto data = load_resource_data(command.cache);
  if (!data) return fail_driple(data.error());
  std::unique_ptr<ResourcePredictor> predictor;
  const auto row = run_job(command.job, *data, make_driple, &predictor);
  if (!row) return fail_driple(row.error());
  fmt::print("{}\n", to_json_line(*row));
  if (command.out.empty() || predictor == nullptr) return 0;
  const Status status = keep_resource_predictor(*predictor, command.out);
  return status.ok() ? 0 : fail_driple(status.error());
}

}  // namespace forerun::learn
