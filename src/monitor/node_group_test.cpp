// Real traffic between two network namespaces at a known rate, seen by the monitor; and that nothing outlives the nodes'
// parent. Skipped where the kernel or the user's rights do not allow namespaces.
#include "monitor/node_group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include "monitor/recording.h"
#include "monitor/traffic.h"

namespace forerun::monitor {
namespace {

constexpr uint64_t kTestRate = 200'000'000;

// Two idle nodes, started by a process of their own.
class Nodes {
 public:
  explicit Nodes(bool routed) {
    int answer[2];
    if (pipe(answer) != 0) return;
    parent = fork();
    if (parent == 0) {
      close(answer[0]);
      NodeGroupOptions options;
      options.rates = {kTestRate, kTestRate};
      options.command = {"sleep", "60"};
      options.routed = routed;
      const auto group = start_nodes(options);
      std::string text = group ? "" : group.error().message();
      if (group)
        text = std::to_string(group->pids[0]) + " " + std::to_string(group->pids[1]) + " " + group->addresses[0];
      [[maybe_unused]] const ssize_t written = write(answer[1], text.c_str(), text.size());
      close(answer[1]);
      _exit(group ? wait_nodes(*group) : 1);
    }
    close(answer[1]);
    char text[512] = {};
    size_t filled = 0;
    for (ssize_t got = 0; (got = read(answer[0], text + filled, sizeof(text) - 1 - filled)) > 0;) {
      filled += static_cast<size_t>(got);
      int first = 0, second = 0;
      char place[64] = {};
      if (sscanf(text, "%d %d %63s", &first, &second, place) == 3) {  // NOLINT(cert-err34-c)
        pids = {first, second};
        address = place;
        break;
      }
    }
    if (pids.empty()) problem = text;
    close(answer[0]);
  }
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;
  ~Nodes() { end(); }

  // Kills the parent alone.
  void end() {
    if (parent <= 0) return;
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
    parent = -1;
  }

  pid_t parent = -1;
  std::vector<pid_t> pids;
  std::string address, problem;
};

bool enter_namespace_of(pid_t pid) {
  const int file = open(("/proc/" + std::to_string(pid) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = file >= 0 && setns(file, CLONE_NEWNET) == 0;
  if (file >= 0) close(file);
  return entered;
}

// Ended: what nobody has waited for yet has no namespace either.
bool gone(pid_t pid) {
  const std::string space = "/proc/" + std::to_string(pid) + "/ns/net";
  for (int attempt = 0; attempt < 500; ++attempt) {
    char link[64];
    if (readlink(space.c_str(), link, sizeof(link)) < 0) return true;
    usleep(10'000);
  }
  return false;
}

class NodeGroupTest : public testing::TestWithParam<bool> {};

TEST_P(NodeGroupTest, CarriesTrafficAtItsRateAndTheMonitorSeesEveryByte) {
  Nodes nodes(GetParam());
  if (nodes.pids.empty()) GTEST_SKIP() << "no network namespaces here: " << nodes.problem;
  bool entered[2] = {false, false};
  Result<Throughput> received = Error{};
  std::atomic<int> stop{0};
  std::thread receiver([&] {
    entered[0] = enter_namespace_of(nodes.pids[0]);
    if (entered[0]) received = receive_traffic(nodes.address, 1);
  });
  std::thread sender([&] {
    entered[1] = enter_namespace_of(nodes.pids[1]);
    usleep(300'000);  // the recording begins in silence
    if (entered[1]) {
      EXPECT_TRUE(send_traffic(nodes.address, 1.0).ok());
    }
    usleep(400'000);  // and ends in it
    stop = SIGTERM;
  });
  RecordingOptions options;
  options.pid = nodes.pids[0];
  options.seconds = 20;
  options.hz = 50;
  options.signal = &stop;
  const auto recording = record(options);
  sender.join();
  receiver.join();
  ASSERT_TRUE(entered[0] && entered[1]);
  ASSERT_TRUE(received.ok()) << received.error().message();
  ASSERT_TRUE(recording.ok()) << recording.error().message();
  const Series& series = recording->receive;
  const double step_s = static_cast<double>(series.period_ns) * 1e-9;
  const double seen = std::accumulate(series.values.begin(), series.values.end(), 0.0) * step_s;
  EXPECT_GE(seen, static_cast<double>(received->bytes));  // every byte, and the headers
  EXPECT_LE(seen, static_cast<double>(received->bytes) * 1.12);
  const BurstMetrics metrics = burst_metrics(series, kNetworkFloor);
  EXPECT_EQ(name(metrics.pattern), "BIB");
  EXPECT_LE(metrics.amount, 1.1 * kTestRate / 8);                                     // the bucket holds it back
  EXPECT_GE(metrics.amount, 0.4 * kTestRate / 8);                                     // a loaded machine may be slower
  EXPECT_LE(burst_metrics(recording->send, kNetworkFloor).mean, 0.1 * metrics.mean);  // only acknowledgements go back
}

TEST_P(NodeGroupTest, LeavesNoNodeBehindWhenItsParentIsKilled) {
  Nodes nodes(GetParam());
  if (nodes.pids.empty()) GTEST_SKIP() << "no network namespaces here: " << nodes.problem;
  ASSERT_EQ(kill(nodes.pids[0], 0), 0);
  nodes.end();
  EXPECT_TRUE(gone(nodes.pids[0]));
  EXPECT_TRUE(gone(nodes.pids[1]));
}

INSTANTIATE_TEST_SUITE_P(Layouts, NodeGroupTest, testing::Values(false, true),
                         [](const auto& layout) { return layout.param ? "Routed" : "Bridged"; });

TEST(NodeGroup, EndsAllNodesWhenOneFails) {
  const pid_t parent = fork();
  if (parent == 0) {
    NodeGroupOptions options;
    options.rates = {0, 0};
    options.command = {"sh", "-c", "if [ $FORERUN_NODE = 1 ]; then exit 7; fi; exec sleep 60"};
    const auto group = start_nodes(options);
    _exit(group ? wait_nodes(*group) : 99);
  }
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 99) GTEST_SKIP() << "no network namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Recording, RunsACommandAndKeepsItsExitCode) {
  RecordingOptions options;
  options.command = {"sh", "-c", "sleep 0.1; exit 3"};
  const auto recording = record(options);
  ASSERT_TRUE(recording.ok()) << recording.error().message();
  EXPECT_EQ(recording->exit_code, 3);
  EXPECT_GE(recording->send.values.size(), 2u);
}

TEST(Recording, SaysWhatItCannotDo) {
  RecordingOptions options;
  EXPECT_FALSE(record(options).ok());  // neither a command nor a time
  options.command = {"/no/such/program"};
  const auto recording = record(options);
  ASSERT_FALSE(recording.ok());
  EXPECT_EQ(recording.error().where, "/no/such/program");
  options.command = {"true"};
  options.interface = "nosuch0";
  const auto other = record(options);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().remedy.find("lo"), std::string::npos);
}

}  // namespace
}  // namespace forerun::monitor
