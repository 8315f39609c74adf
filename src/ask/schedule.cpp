// Jobs on a cluster under policies: the figures, and, as a question of its own, what became of every job.
#include "api/schedule.h"

#include "ask/answers.h"
#include "ask/run_words.h"
#include "report/schedule.h"

namespace forerun::ask {
namespace {

// Words as text, until all of them are read.
struct ScheduleWords {
  std::string format, synthetic, from, to, draw, predictor;
  KeyValues gpus;
  std::vector<std::string> policies, by, quotas;
};

// One word that says nothing without another.
void needs(Question& question, const char* word, const char* other) {
  if (question.has(word) && !question.has(other)) question.refuse(word, std::string("goes with ") + other, "give both");
}

void read_cluster(Question& question, ScheduleRequest& request) {
  request.gpus_per_node = static_cast<int32_t>(question.whole("gpus_per_node", 1, 1024).value_or(0));
  request.nodes_per_rack = static_cast<int32_t>(question.whole("nodes_per_rack", 1, 100000).value_or(0));
  if (const std::string link = question.text("network"); !link.empty()) request.network.link = link;
  request.network.oversubscription =
      question.number("oversubscription", 1, 1000).value_or(request.network.oversubscription);
  cluster::SimulationOptions& simulation = request.simulation;
  simulation.node_loss = question.number("node_loss", 0, 0.99).value_or(simulation.node_loss);
  simulation.rack_loss = question.number("rack_loss", 0, 0.99).value_or(simulation.rack_loss);
  simulation.restart_cost = cluster::time_from_seconds(question.number("restart_cost", 0, 1e9).value_or(0));
  simulation.failures.mean_hours_between = question.number("failure_hours", 0, 1e9).value_or(0);
  simulation.failures.repair = cluster::time_from_seconds(question.number("repair_hours", 0, 1e6).value_or(1) * 3600);
  simulation.failures.checkpoint_every = cluster::time_from_seconds(question.number("checkpoint", 0, 1e9).value_or(0));
  needs(question, "nodes_per_rack", "gpus_per_node");
  needs(question, "oversubscription", "nodes_per_rack");
  needs(question, "node_loss", "gpus_per_node");
  needs(question, "rack_loss", "nodes_per_rack");
  needs(question, "repair_hours", "failure_hours");
  needs(question, "checkpoint", "failure_hours");
}

ScheduleWords read_words(Question& question, ScheduleRequest& request) {
  ScheduleWords words;
  request.file = question.text("file");
  words.format = question.text("format");
  words.synthetic = question.text("synthetic");
  words.from = question.word("from");
  words.to = question.word("to");
  words.draw = question.text("draw");
  words.gpus = question.settings("gpus");
  if (const auto first = question.whole("first", 1, int64_t{1} << 40)) request.load.first = static_cast<size_t>(*first);
  if (const auto most = question.whole("max_gpus", 1, int64_t{1} << 30)) {
    request.load.most_gpus = static_cast<int32_t>(*most);
  }
  request.load.member = question.text("member");
  request.load.companion = question.text("throughputs");
  request.load.lenient = question.flag("lenient");
  request.machine = question.text("machine");
  words.policies = question.texts("policies");
  words.predictor = question.text("predictor");
  words.by = question.texts("by");
  words.quotas = question.texts("quotas");
  request.repeat = question.whole("repeat", 1, 100000).value_or(1);
  request.seed = static_cast<uint64_t>(question.whole("seed", 0, INT64_MAX).value_or(1));
  request.threads = static_cast<size_t>(question.whole("threads", 1, 256).value_or(1));
  read_cluster(question, request);
  return words;
}

template <class Value, class Parse>
Status parse_word(const std::string& text, std::optional<Value>& into, Parse parse) {
  if (text.empty()) return {};
  auto value = parse(text);
  if (!value) return value.error();
  into = *std::move(value);
  return {};
}

// {"a100": 4} as the option has it, "a100=4".
std::string gpus_text(const KeyValues& gpus) {
  std::string text;
  for (const KeyValue& kind : gpus) text += (text.empty() ? "" : ",") + kind.first + "=" + kind.second;
  return text;
}

Status parse_policies(const ScheduleWords& words, const Asking& asking, ScheduleRequest& request) {
  for (const std::string& text : words.policies) {
    if (const auto own = asking.policies.find(text); own != asking.policies.end()) {
      request.policies.push_back(cluster::own_policy(own->first, own->second));
      continue;
    }
    auto policy = cluster::parse_policy(text);
    if (!policy) return policy.error();
    request.policies.push_back(std::move(*policy));
  }
  return {};
}

Status parse_words(const ScheduleWords& words, const std::string& count, const Asking& asking,
                   ScheduleRequest& request) {
  const auto from = [](const std::string& text) { return parse_when(text, "--from"); };
  const auto to = [](const std::string& text) { return parse_when(text, "--to"); };
  const std::string gpus = words.gpus.empty() ? count : gpus_text(words.gpus);
  for (const Status& status :
       {parse_word(words.synthetic, request.synthetic, cluster::parse_synthetic),
        parse_word(gpus, request.cluster, cluster::parse_cluster),
        parse_word(words.draw, request.draw, cluster::parse_draw), parse_word(words.from, request.load.from, from),
        parse_word(words.to, request.load.to, to), parse_policies(words, asking, request)}) {
    if (!status) return status;
  }
  if (!words.format.empty()) {
    const auto format = parse_job_format(words.format);
    if (!format) return format.error();
    request.format = *format;
  }
  auto predictor = parse_predictor(words.predictor.empty() ? "perfect" : words.predictor);
  if (!predictor) return predictor.error();
  request.predictor = std::move(*predictor);
  for (const std::string& text : words.by) {
    const auto by = cluster::parse_breakdown(text);
    if (!by) return by.error();
    request.by.push_back(*by);
  }
  auto quotas = cluster::parse_quotas(words.quotas);
  if (!quotas) return quotas.error();
  request.simulation.quotas = *std::move(quotas);
  return {};
}

Result<ScheduleAnswer> scheduled(Question& question, const Asking& asking, bool jobs) {
  ScheduleRequest request;
  const ScheduleWords words = read_words(question, request);
  const std::string count = question.word("gpu_count");
  const WorkControl control = read_limits(question, asking.control);
  if (const Status status = question.status(); !status.ok()) return status.error();
  if (const Status status = parse_words(words, count, asking, request); !status.ok()) return status.error();
  request.keep_schedules = jobs;
  return schedule(request, control);
}

}  // namespace

Result<std::string> answer_schedule(Question& question, const Asking& asking) {
  const auto answer = scheduled(question, asking, false);
  return answer ? Result<std::string>(to_json(answer->report)) : answer.error();
}

Result<std::string> answer_jobs(Question& question, const Asking& asking) {
  const auto answer = scheduled(question, asking, true);
  if (!answer) return answer.error();
  std::string table;
  const auto add = [&](std::string_view text) -> Status {
    table += text;
    return {};
  };
  if (const Status status = write_jobs_csv(*answer, add); !status.ok()) return status.error();
  return table;
}

}  // namespace forerun::ask
