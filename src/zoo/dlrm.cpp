// DLRM, the recommendation model: dense features through a bottom MLP, sparse ones through embedding tables (bags that
// are summed), pairwise dot products of all of them, and a top MLP.
//
// Source: Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems" (2019),
// and its PyTorch program. Two logits under cross entropy stand for its one under binary cross entropy; gradients of
// the tables are dense. Tables may be dealt out to GPUs (table-wise, as TorchRec does): each holds as many, looks up the rows of
// all GPUs' samples, and sends each GPU its samples' sums. The graph is that of the GPU with the largest tables.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

#include "zoo/attention_layers.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

// The sizes of the 26 categorical features of the Criteo Kaggle data: 33,762,577 rows together.
std::vector<int64_t> criteo_kaggle_rows() {
  return {1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
          27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572};
}

// Linear layers with a ReLU after each but, where `open`, the last.
class DlrmMlp {
 public:
  DlrmMlp(ForwardBuilder& b, std::string name, const std::vector<int64_t>& widths, bool open)
      : b_(b), name_(std::move(name)), open_(open) {
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      layers_.emplace_back(b, fmt::format("{}.{}", name_, 2 * i), widths[i], widths[i + 1]);
    }
  }

  TensorId operator()(TensorId x) const {
    for (size_t i = 0; i < layers_.size(); ++i) {
      x = layers_[i](x);
      if (open_ && i + 1 == layers_.size()) break;
      const Scope scope(b_, fmt::format("{}.{}", name_, 2 * i + 1));
      x = b_.relu(x);
    }
    return x;
  }

 private:
  ForwardBuilder& b_;
  std::string name_;
  bool open_;
  std::vector<Linear> layers_;
};

bool dlrm_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "features", "classes", "dim", "pooling"})) return false;
  if (c.list("rows").size() > 4096 || c.list("bottom").size() > 256 || c.list("top").size() > 256) {
    b.fail("more than 4096 tables or 256 layers", "use fewer");
    return false;
  }
  if (c.integer("dealt") < 1 ||
      c.integer("dealt") > std::max<int64_t>(static_cast<int64_t>(c.list("rows").size()), 1)) {
    b.fail(fmt::format("{} tables cannot be dealt out to {} GPUs, whole tables to each", c.list("rows").size(),
                       c.integer("dealt")),
           fmt::format("choose 1 to {} GPUs", std::max<size_t>(c.list("rows").size(), 1)));
    return false;
  }
  for (const char* name : {"rows", "bottom", "top"}) {
    for (const int64_t value : c.list(name)) {
      if (value >= 1 && value <= (int64_t{1} << 40)) continue;
      b.fail(fmt::format("{} has an entry of {}", name, value), fmt::format("give {} entries above 0", name));
      return false;
    }
  }
  return true;
}

// The bags of one sparse feature summed: [batch, dim].
TensorId look_up(ForwardBuilder& b, TensorId table, TensorId offsets, size_t feature, int64_t indices) {
  const TensorId values = b.input(fmt::format("indices.{}", feature), {indices}, DType::int64);
  const TensorId starts = b.select(offsets, 0, static_cast<int64_t>(feature));
  const Scope scope(b, fmt::format("emb_l.{}", feature));
  return b.embedding_bag(table, values, starts);
}

// The tables of the GPU that has the largest, where they are dealt out one after the other by size.
std::vector<int64_t> largest_share(std::vector<int64_t> rows, int64_t gpus) {
  if (gpus == 1) return rows;
  std::sort(rows.begin(), rows.end(), std::greater<>());
  std::vector<int64_t> share;
  for (size_t i = 0; i < rows.size(); i += static_cast<size_t>(gpus)) share.push_back(rows[i]);
  return share;
}

// What the GPUs looked up for each other, exchanged: sums [gpus * batch, dim] of own tables -> [batch, tables * dim] of all.
TensorId exchanged_sums(ForwardBuilder& b, const std::vector<TensorId>& sums, int64_t gpus, int64_t tables) {
  const TensorId own = sums.size() > 1 ? b.cat(sums, 1) : sums.front();
  const Shape s = b.shape(own);
  const TensorId swapped = b.opaque("forerun.swap_rows.default", {own}, {{s, b.dtype(own)}}).front();
  const int64_t batch = s[0] / gpus, dim = s[1] / static_cast<int64_t>(sums.size());
  const TensorId by_gpu = b.permute(b.view(swapped, {gpus, batch, s[1]}), {1, 0, 2});
  const TensorId all = b.reshape(by_gpu, {batch, gpus * s[1]});
  return tables * dim == gpus * s[1] ? all : b.slice(all, 1, 0, tables * dim);  // the last GPUs may have a table less
}

// The dot products of each pair of `count` features, [batch, dim] each and joined in `features`, after the first of them:
// [batch, dim + pairs].
TensorId interact(ForwardBuilder& b, const std::vector<TensorId>& features, int64_t count, int64_t batch, int64_t dim) {
  const int64_t pairs = count * (count - 1) / 2;
  const TensorId stacked = b.view(b.cat(features, 1), {batch, -1, dim});
  const TensorId products = b.bmm(stacked, b.transpose(stacked, 1, 2));
  const TensorId row = b.create("aten.lift_fresh.default", {pairs}, DType::int64);
  const TensorId column = b.create("aten.lift_fresh.default", {pairs}, DType::int64);
  const TensorId flat = b.index(products, {row, column}, {batch, pairs});
  return b.cat({features.front(), flat}, 1);
}

void build_dlrm(ForwardBuilder& b, const Configuration& c) {
  if (!dlrm_makes_sense(b, c)) return;
  const int64_t batch = c.integer("batch");
  const int64_t dim = c.integer("dim");
  const auto& rows = c.list("rows");
  const auto tables = static_cast<int64_t>(rows.size());
  std::vector<int64_t> bottom = {c.integer("features")};
  bottom.insert(bottom.end(), c.list("bottom").begin(), c.list("bottom").end());
  bottom.push_back(dim);
  std::vector<int64_t> top = {dim + (tables + 1) * tables / 2};
  top.insert(top.end(), c.list("top").begin(), c.list("top").end());
  top.push_back(c.integer("classes"));

  const TensorId dense = b.input("x", {batch, c.integer("features")});
  const int64_t gpus = c.integer("dealt");
  const std::vector<int64_t> own = largest_share(rows, gpus);
  std::vector<TensorId> weights;
  for (size_t i = 0; i < own.size(); ++i)
    weights.push_back(b.parameter(fmt::format("emb_l.{}.weight", i), {own[i], dim}));
  const DlrmMlp bottom_mlp(b, "bot_l", bottom, false);
  const DlrmMlp top_mlp(b, "top_l", top, true);

  std::vector<TensorId> features = {bottom_mlp(dense)};
  if (tables > 0) {
    const int64_t looked_up = gpus * batch;  // samples
    const TensorId offsets = b.input("offsets", {static_cast<int64_t>(own.size()), looked_up}, DType::int64);
    std::vector<TensorId> sums;
    for (size_t i = 0; i < own.size(); ++i) {
      sums.push_back(look_up(b, weights[i], offsets, i, looked_up * c.integer("pooling")));
    }
    if (gpus > 1) sums = {exchanged_sums(b, sums, gpus, tables)};
    features.insert(features.end(), sums.begin(), sums.end());
  }
  const TensorId x = tables > 0 ? interact(b, features, tables + 1, batch, dim) : features.front();
  b.result(top_mlp(x));
}

}  // namespace

Family dlrm_family() {
  return {.name = "dlrm",
          .description = "DLRM recommendation model; defaults for the Criteo Kaggle data",
          .input = InputKind::flat,
          .parameters = {{"dim", 16, "width of the embeddings"},
                         {"rows", criteo_kaggle_rows(), "rows of each embedding table"},
                         {"pooling", 1, "indices looked up in each table for a sample"},
                         {"bottom", std::vector<int64_t>{512, 256, 64}, "hidden layers of the bottom MLP"},
                         {"top", std::vector<int64_t>{512, 256}, "hidden layers of the top MLP"},
                         {"dealt", 1,
                          "GPUs that the tables are dealt out to; the model is that of the one with the largest"},
                         {"batch", 2048, "samples in a batch"},
                         {"features", 13, "dense features"},
                         {"classes", 2, "logits"}},
          .build = build_dlrm};
}

std::vector<NamedModel> dlrm_models() { return {{"dlrm_kaggle", "dlrm", {}}}; }

}  // namespace forerun::zoo
