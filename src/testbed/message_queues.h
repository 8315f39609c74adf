// Messages of distributed training on their way over the nodes' links.
//
// Messages from one node to another go one after the other, those between different nodes share the links fairly
// (fair_share.h), but for what Reno makes of few of them: to a server they take turns of a queue's length, and of the
// answers of a server one, whose congestion window is the largest, gets more (LinkSharing). Servers are the first
// nodes, workers those after them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "testbed/fair_share.h"
#include "testbed/host_rates.h"

namespace forerun::scale {

enum class MessageKind : uint8_t { push, pull, ring };

struct Message {
  MessageKind kind;
  size_t worker, server, part;
  double left;         // bytes
  double head = 0;     // of those that are left, what no other answer shares the link with
  int64_t number = 0;  // in the order in which they began
};

class MessageQueues {
 public:
  // `link`: bytes a second, each way, of every node; `duplex`: the share of it that a node has each way while it both
  // sends and receives; `last_first`: of answers the last worker's come first.
  MessageQueues(size_t servers, size_t workers, double link, double duplex, const LinkSharing& sharing,
                bool last_first = false);

  void send(size_t from, size_t to, Message message);
  // Who sends now, and how fast: holds until `advance` or `send`.
  void share_out();
  // Seconds until a message or a turn ends; infinity where nothing is on its way.
  [[nodiscard]] double until_next() const;
  // Bytes a second of a node.
  [[nodiscard]] double sending(size_t node) const;
  [[nodiscard]] double receiving(size_t node) const;
  // What arrived in that time.
  std::vector<Message> advance(double seconds);

 private:
  struct Channel {
    Transfer ends;
    std::deque<Message> queue;
  };
  // Who sends to a server, and what is left of its turn.
  struct Turn {
    size_t channel = 0;
    double left = 0;
  };

  [[nodiscard]] bool takes_turns(const Channel& channel) const;
  void choose_channels();
  [[nodiscard]] std::vector<Transfer> weighted_transfers() const;
  [[nodiscard]] std::vector<double> link_rates() const;

  size_t nodes_, servers_;
  bool last_first_;
  int64_t messages_ = 0;
  double link_, duplex_;
  LinkSharing sharing_;
  std::vector<Channel> channels_;
  std::vector<Turn> turns_;  // by server
  std::vector<size_t> busy_;
  std::vector<double> rates_;  // of the busy ones
};

}  // namespace forerun::scale
