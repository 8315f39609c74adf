#include "testbed/message_queues.h"

#include <algorithm>
#include <limits>

namespace forerun::scale {

MessageQueues::MessageQueues(size_t servers, size_t workers, double link, double duplex, const LinkSharing& sharing,
                             bool last_first)
    : nodes_(servers + workers),
      servers_(servers),
      last_first_(last_first),
      link_(link),
      duplex_(duplex),
      sharing_(sharing) {
  channels_.resize(nodes_ * nodes_);
  for (size_t from = 0; from < nodes_; ++from) {
    for (size_t to = 0; to < nodes_; ++to) channels_[from * nodes_ + to].ends = {from, to};
  }
  turns_.resize(servers_);
}

void MessageQueues::send(size_t from, size_t to, Message message) {
  message.left = std::max(message.left, 1.0);
  message.head = from < servers_ ? std::min(message.left, sharing_.head_bytes) : 0;
  message.number = ++messages_;
  channels_[from * nodes_ + to].queue.push_back(message);
}

bool MessageQueues::takes_turns(const Channel& channel) const {
  return sharing_.turn_bytes > 0 && channel.ends.to < servers_ && channel.ends.from >= servers_;
}

// Channels with something to send, of those that take turns the one whose turn it is.
void MessageQueues::choose_channels() {
  busy_.clear();
  std::vector<std::vector<size_t>> waiting(servers_);
  for (size_t i = 0; i < channels_.size(); ++i) {
    if (channels_[i].queue.empty()) continue;
    if (takes_turns(channels_[i])) {
      waiting[channels_[i].ends.to].push_back(i);
    } else {
      busy_.push_back(i);
    }
  }
  for (size_t server = 0; server < servers_; ++server) {
    const std::vector<size_t>& among = waiting[server];
    if (among.empty()) continue;
    Turn& turn = turns_[server];
    if (turn.left < 1 || channels_[turn.channel].queue.empty()) {
      const auto next = std::upper_bound(among.begin(), among.end(), turn.channel);
      turn = {next == among.end() ? among.front() : *next, sharing_.turn_bytes};
    }
    if (among.size() == 1) turn.left = std::max(sharing_.turn_bytes, sharing_.first_turn_bytes);
    busy_.push_back(turn.channel);
  }
}

// Of a server's answers one has more weight: the first that began while its head lasts, then that to the favoured worker.
std::vector<Transfer> MessageQueues::weighted_transfers() const {
  constexpr double kAlone = 1e9;
  std::vector<Transfer> transfers;
  for (const size_t i : busy_) transfers.push_back(channels_[i].ends);
  for (size_t server = 0; server < servers_; ++server) {
    Transfer* favoured = nullptr;
    Transfer* first = nullptr;
    const Message* began = nullptr;
    for (size_t i = 0; i < busy_.size(); ++i) {
      Transfer& transfer = transfers[i];
      if (transfer.from != server) continue;
      const Message& message = channels_[busy_[i]].queue.front();
      if (favoured == nullptr || (transfer.to > favoured->to) == last_first_) favoured = &transfer;
      if (began == nullptr || message.number < began->number) {
        first = &transfer;
        began = &message;
      }
    }
    if (began == nullptr) continue;
    if (began->head > 1) {
      first->weight = kAlone;
    } else {
      favoured->weight = sharing_.first_weight;
    }
  }
  return transfers;
}

// Of what each node sends, then of what each receives.
std::vector<double> MessageQueues::link_rates() const {
  std::vector<bool> sends(nodes_, false);
  std::vector<bool> receives(nodes_, false);
  for (const size_t i : busy_) {
    sends[channels_[i].ends.from] = true;
    receives[channels_[i].ends.to] = true;
  }
  std::vector<double> rates(2 * nodes_, link_);
  for (size_t node = 0; node < nodes_; ++node) {
    if (sends[node] && receives[node]) rates[node] = rates[nodes_ + node] = duplex_ * link_;
  }
  return rates;
}

void MessageQueues::share_out() {
  choose_channels();
  rates_ = fair_rates(weighted_transfers(), link_rates());
}

double MessageQueues::until_next() const {
  double seconds = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < busy_.size(); ++i) {
    const Channel& channel = channels_[busy_[i]];
    const Message& message = channel.queue.front();
    double bytes = message.head > 1 ? message.head : message.left;
    if (takes_turns(channel)) bytes = std::min(bytes, turns_[channel.ends.to].left);
    if (rates_[i] > 0) seconds = std::min(seconds, bytes / rates_[i]);
  }
  return seconds;
}

double MessageQueues::sending(size_t node) const {
  double sum = 0;
  for (size_t i = 0; i < busy_.size(); ++i) sum += channels_[busy_[i]].ends.from == node ? rates_[i] : 0;
  return sum;
}

double MessageQueues::receiving(size_t node) const {
  double sum = 0;
  for (size_t i = 0; i < busy_.size(); ++i) sum += channels_[busy_[i]].ends.to == node ? rates_[i] : 0;
  return sum;
}

std::vector<Message> MessageQueues::advance(double seconds) {
  std::vector<Message> delivered;
  for (size_t i = 0; i < busy_.size(); ++i) {
    Channel& channel = channels_[busy_[i]];
    const double bytes = seconds * rates_[i];
    channel.queue.front().left -= bytes;
    channel.queue.front().head -= bytes;
    if (takes_turns(channel)) turns_[channel.ends.to].left -= bytes;
    if (channel.queue.front().left > 1e-3) continue;
    delivered.push_back(channel.queue.front());
    channel.queue.pop_front();
  }
  return delivered;
}

}  // namespace forerun::scale
