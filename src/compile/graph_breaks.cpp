#include "compile/graph_breaks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "derive/op_class.h"

namespace forerun::compile {
namespace {

constexpr uint32_t kNoPiece = UINT32_MAX;

bool reads_on_host(std::string_view base) { return base == "_local_scalar_dense" || base == "item"; }

bool is_within(std::string_view module, std::string_view frame) {
  return frame.empty() || module == frame || (module.starts_with(frame) && module[frame.size()] == '.');
}
std::string_view parent_of(std::string_view module) {
  const size_t dot = module.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
}
// The module that calls it. Those that have a number stand in a list, which calls nothing itself.
std::string_view caller_of(std::string_view module) {
  const std::string_view last = module.substr(module.rfind('.') + 1);
  const bool in_list = !last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos;
  return parent_of(in_list ? parent_of(module) : module);
}

class Cutter {
 public:
  Cutter(const Graph& graph, const Round& whole, const DynamoTrace* dynamo, std::vector<GraphBreak>& breaks)
      : graph_(graph), whole_(whole), dynamo_(dynamo), breaks_(breaks) {
    while (forward_end_ < whole.places.size() && op(forward_end_).phase == Phase::forward) ++forward_end_;
    begins_.resize(forward_end_ + 1);
    outside_.resize(forward_end_);
  }

  bool cut() {
    if (dynamo_ != nullptr) {
      follow_dynamo();
    } else {
      find_drawn();
    }
    for (size_t i = 0; i < forward_end_; ++i) {
      if (whole_.places[i] != Place::forward) continue;
      std::string_view why = refused(i);
      if (why.empty() && dynamo_ == nullptr) why = stops_tracing(i);
      if (!why.empty()) break_at(i, why);
    }
    for (size_t i = 0; i < forward_end_ && dynamo_ == nullptr; ++i) {
      if (op_class(name(i)) == OpClass::rnn && whole_.places[i] == Place::forward) skip_frame_of(i);
    }
    return broken_;
  }

  std::vector<Round> pieces() {
    number_forward();
    number_backward();
    std::vector<Round> found;
    for (uint32_t piece = 0; piece < count_; ++piece) {
      Round round{.first = whole_.first, .end = whole_.end, .places = {}};
      round.autocast = whole_.autocast;
      round.loss_inside = whole_.loss_inside && piece + 1 == count_;
      round.places.assign(whole_.places.size(), Place::outside);
      bool works = false;
      for (size_t i = 0; i < whole_.places.size(); ++i) {
        if (piece_[i] != piece) continue;
        round.places[i] = whole_.places[i];
        works = works || op_class(name(i)) != OpClass::view;
      }
      if (works) found.push_back(std::move(round));
    }
    return found;
  }

 private:
  [[nodiscard]] const Op& op(size_t index) const { return graph_.ops()[whole_.first + index]; }
  [[nodiscard]] const std::string& name(size_t index) const { return graph_.name(op(index)); }
  [[nodiscard]] std::string_view module(size_t index) const { return graph_.module(op(index)); }

  // Its pieces, and what it left out; a model in one piece is whole.
  void follow_dynamo() {
    breaks_ = dynamo_->breaks;
    for (size_t i = 0; i < forward_end_; ++i) {
      if (whole_.places[i] != Place::forward) continue;
      const bool first = i == 0 || op(i - 1).piece != op(i).piece;
      outside_[i] = op(i).piece == 0;
      begins_[i] = begins_[i] || first;
      broken_ = broken_ || op(i).piece > 1 || (outside_[i] && op_class(name(i)) != OpClass::view);
    }
  }

  // Storages of one element that a random number decides.
  void find_drawn() {
    drawn_.resize(graph_.storages().size());
    for (size_t i = 0; i < forward_end_; ++i) {
      if (op(i).output_count != 1) continue;
      const TensorId made = graph_.outputs(op(i))[0];
      bool drawn = op_class(name(i)) == OpClass::random && graph_.element_count(made) == 1;
      for (const TensorId input : graph_.inputs(op(i))) drawn = drawn || drawn_[graph_.tensor(input).storage.value];
      drawn_[graph_.tensor(made).storage.value] = drawn && graph_.element_count(made) == 1;
    }
  }

  // By what is behind Dynamo.
  [[nodiscard]] std::string_view refused(size_t index) const {
    if (base_name(name(index)) == "_grouped_mm" &&
        graph_.tensor(graph_.inputs(op(index))[0]).dtype != DType::bfloat16) {
      return "products of groups are bfloat16 alone; others are made one by one, by sizes that the host reads";
    }
    return {};
  }

  [[nodiscard]] std::string_view stops_tracing(size_t index) const {
    const std::string_view base = base_name(name(index));
    if (base == "nonzero" || base == "masked_select" || base == "_unique2" || base == "unique_dim") {
      return "the size of a result depends on values";
    }
    if (!reads_on_host(base) || op(index).input_count == 0) return {};
    // Libraries read values for checks of their own, which they leave out while they are traced.
    const bool decides = drawn_[graph_.tensor(graph_.inputs(op(index))[0]).storage.value];
    return decides ? "a number that is drawn decides which way to go" : std::string_view();
  }

  void break_at(size_t index, std::string_view why) {
    note(index, why);
    outside_[index] = true;
    begins_[index] = begins_[index + 1] = true;
    // Where the modules are entered and left that it happens in.
    for (std::string_view frame = module(index); !frame.empty(); frame = parent_of(frame)) {
      size_t first = index;
      while (first > 0 && is_within(module(first - 1), frame)) --first;
      size_t end = index + 1;
      while (end < forward_end_ && is_within(module(end), frame)) ++end;
      begins_[first] = begins_[end] = true;
    }
  }

  // The frame that calls a recurrent layer runs eagerly, and with it the layers that it calls itself; models of many layers that it calls
  // are frames of their own.
  void skip_frame_of(size_t index) {
    break_at(index, "recurrent layers are not traced, nor what calls them");
    const std::string_view frame = caller_of(module(index));
    std::unordered_map<std::string_view, bool> has_layers;  // by module that the frame calls
    for (size_t i = 0; i < forward_end_; ++i) {
      if (!is_within(module(i), frame) || module(i) == frame) continue;
      has_layers[called(frame, module(i))] |= caller_of(module(i)) != frame;
    }
    std::string_view before;
    for (size_t i = 0; i < forward_end_; ++i) {
      if (!is_within(module(i), frame)) continue;
      const std::string_view child = module(i) == frame ? std::string_view() : called(frame, module(i));
      outside_[i] = outside_[i] || child.empty() || !has_layers[child];
      begins_[i] = begins_[i] || child != before;
      before = child;
    }
  }
  // "a.b" of "a" and "a.b.c".
  static std::string_view called(std::string_view frame, std::string_view module) {
    const size_t from = frame.empty() ? 0 : frame.size() + 1;
    return module.substr(0, std::min(module.find('.', from), module.size()));
  }

  void note(size_t index, std::string_view why) {
    broken_ = true;
    breaks_.push_back({.module = std::string(module(index)), .op = name(index), .why = std::string(why), .where = {}});
  }

  void number_forward() {
    piece_.assign(whole_.places.size(), kNoPiece);
    bool open = false;
    for (size_t i = 0; i < forward_end_; ++i) {
      open = open && !begins_[i];
      const bool inside = !outside_[i] && whole_.places[i] == Place::forward;
      if (inside) {
        if (!open) ++count_;
        piece_[i] = count_ - 1;
      }
      open = inside;
      // Ops without a backward have the number of the last before them that has one.
      if (op(i).sequence != 0) by_sequence_.try_emplace(op(i).sequence, piece_[i]);
    }
  }

  // Of the backward pass by what it is the backward of, or by the op before that where none has its number (numbers rise along the forward
  // pass); what autograd adds up belongs to a piece if all that it adds does.
  void number_backward() {
    std::vector<uint32_t> writer(graph_.storages().size(), kNoPiece);
    for (size_t i = forward_end_; i < whole_.places.size(); ++i) {
      const auto behind = by_sequence_.upper_bound(op(i).sequence);
      uint32_t piece = kNoPiece;
      const bool known = behind != by_sequence_.begin() && op(i).sequence <= by_sequence_.rbegin()->first;
      if (op(i).sequence != 0 && known) {
        piece = std::prev(behind)->second;
      } else if (op(i).input_count > 0) {
        piece = writer[graph_.tensor(graph_.inputs(op(i))[0]).storage.value];
        for (const TensorId input : graph_.inputs(op(i))) {
          if (writer[graph_.tensor(input).storage.value] != piece) piece = kNoPiece;
        }
      }
      if (whole_.places[i] == Place::outside) piece = kNoPiece;
      piece_[i] = piece;
      for (const TensorId output : graph_.outputs(op(i))) writer[graph_.tensor(output).storage.value] = piece;
    }
  }

  const Graph& graph_;
  const Round& whole_;
  const DynamoTrace* dynamo_;
  std::vector<GraphBreak>& breaks_;
  bool broken_ = false;
  size_t forward_end_ = 0;
  std::vector<bool> begins_;   // by op of the forward pass: no graph goes on here
  std::vector<bool> outside_;  // by op of the forward pass
  std::vector<bool> drawn_;    // by storage
  std::vector<uint32_t> piece_;
  std::map<uint32_t, uint32_t> by_sequence_;
  uint32_t count_ = 0;
};

}  // namespace

std::vector<Round> pieces_of(const Graph& graph, Round whole, const DynamoTrace* dynamo,
                             std::vector<GraphBreak>& breaks) {
  Cutter cutter(graph, whole, dynamo, breaks);
  if (cutter.cut()) return cutter.pieces();
  std::vector<Round> rounds;
  rounds.push_back(std::move(whole));
  return rounds;
}

}  // namespace forerun::compile
