#include "derive/op_class.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace forerun {
namespace {

// Base names without the in-place underscore, a space between. A backward form stands here only where its class is not
// the forward one's.
struct ClassNames {
  OpClass cls;
  std::string_view names;
};

constexpr ClassNames kClasses[] = {
    {OpClass::view,
     "t view view_as detach permute expand expand_as select slice unsqueeze squeeze split split_with_sizes "
     "unsafe_split unsafe_split_with_sizes chunk unsafe_chunk tensor_split as_strided alias lift lift_fresh "
     "_unsafe_view _reshape_alias transpose unbind narrow diagonal unfold movedim swapaxes swapdims moveaxis "
     "mT mH adjoint flatten unflatten reshape view_as_real view_as_complex _conj _neg_view real imag empty "
     "empty_like empty_strided empty_permuted new_empty new_empty_strided set resize resize_as is_same_size "
     "sym_size sym_numel sym_stride sym_storage_offset requires_grad result_type size stride dim numel "
     "record_stream is_pinned _cudnn_init_dropout_state _nested_tensor_size"},
    {OpClass::gemm,
     "mm addmm bmm baddbmm addbmm matmul linear _addmm_activation addmv mv dot vdot addr ger outer einsum "
     "tensordot bilinear _trilinear _scaled_mm _scaled_grouped_mm _grouped_mm _int_mm _weight_int8pack_mm "
     "_weight_int4pack_mm int8_linear_matmul fp8_gemm sparse_mm _sparse_mm chain_matmul linalg_multi_dot "
     "_cslt_sparse_mm kron"},
    {OpClass::convolution,
     "convolution _convolution convolution_overrideable conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
     "conv_transpose3d cudnn_convolution cudnn_convolution_transpose cudnn_convolution_relu "
     "cudnn_convolution_add_relu miopen_convolution miopen_depthwise_convolution _conv_depthwise2d "
     "conv_depthwise3d slow_conv2d _slow_conv2d _slow_conv2d_forward slow_conv3d slow_conv3d_forward "
     "slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d thnn_conv2d "
     "mkldnn_convolution conv_tbc deform_conv2d"},
    {OpClass::attention,
     "scaled_dot_product_attention _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention "
     "_scaled_dot_product_cudnn_attention _scaled_dot_product_attention_math "
     "_scaled_dot_product_fused_attention_overrideable _scaled_dot_product_flash_attention_for_cpu "
     "_scaled_dot_product_attention_math_for_mps _flash_attention _flash_attention_forward "
     "_efficient_attention _efficient_attention_forward _cudnn_attention _cudnn_attention_forward "
     "_native_multi_head_attention flex_attention"},
    {OpClass::rnn,
     "_cudnn_rnn miopen_rnn lstm gru rnn_tanh rnn_relu quantized_lstm lstm_cell gru_cell rnn_tanh_cell "
     "rnn_relu_cell lstm_mps"},
    {OpClass::normalization,
     "cudnn_batch_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training "
     "_native_batch_norm_legit_functional _batch_norm_with_update _batch_norm_with_update_functional "
     "_batch_norm_no_update batch_norm _batch_norm_impl_index miopen_batch_norm batch_norm_stats "
     "batch_norm_elemt batch_norm_backward_reduce batch_norm_backward_elemt "
     "batch_norm_gather_stats_with_counts native_layer_norm layer_norm native_group_norm group_norm "
     "instance_norm rms_norm _fused_rms_norm local_response_norm _weight_norm_interface _weight_norm "
     "weight_norm renorm _transform_bias_rescale_qkv"},
    {OpClass::softmax,
     "_softmax _log_softmax softmax log_softmax _safe_softmax _masked_softmax _sparse_softmax "
     "_sparse_log_softmax softmin"},
    {OpClass::reduction,
     "sum mean nansum nanmean prod amax amin aminmax max min argmax argmin all any var var_mean std std_mean "
     "norm linalg_vector_norm linalg_matrix_norm logsumexp cumsum cumprod cummax cummin _cummax_helper "
     "_cummin_helper logcumsumexp median nanmedian mode count_nonzero trace bincount histc nll_loss "
     "nll_loss_forward nll_loss2d_forward nll_loss2d nll_loss_nd cross_entropy_loss mse_loss l1_loss "
     "smooth_l1_loss huber_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits _ctc_loss "
     "ctc_loss multi_margin_loss multilabel_margin_loss_forward soft_margin_loss sum_to_size _euclidean_dist "
     "cdist _cdist_forward _pdist_forward dist equal segment_reduce _segment_reduce "
     "_amp_foreach_non_finite_check_and_unscale"},
    {OpClass::pooling,
     "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d "
     "avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d adaptive_avg_pool3d "
     "_adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d "
     "fractional_max_pool3d max_unpool2d max_unpool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
     "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d "
     "upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa "
     "_upsample_bicubic2d_aa grid_sampler_2d grid_sampler_3d grid_sampler im2col col2im cudnn_grid_sampler "
     "affine_grid_generator quantized_max_pool2d roi_align roi_pool"},
    {OpClass::embedding,
     "embedding embedding_dense embedding_sparse embedding_renorm embedding_bag _embedding_bag "
     "_embedding_bag_forward_only _embedding_bag_dense _embedding_bag_sparse _embedding_bag_per_sample_weights"},
    {OpClass::indexing,
     "index _unsafe_index index_put _index_put_impl _unsafe_index_put index_select index_add index_copy "
     "index_fill index_reduce gather scatter scatter_add scatter_reduce take put take_along_dim masked_select "
     "masked_scatter masked_scatter_backward roll flip fliplr flipud rot90 sort topk argsort msort kthvalue "
     "nonzero unique_dim _unique2 unique unique_consecutive searchsorted bucketize repeat_interleave "
     "nll_loss_backward nll_loss2d_backward one_hot value_selecting_reduction_backward nms isin "
     "_ctc_loss_backward select_scatter slice_scatter diagonal_scatter as_strided_scatter"},
    {OpClass::copy,
     "clone contiguous copy _copy_from _copy_from_and_resize _to_copy to type_as cat concat concatenate stack "
     "hstack vstack dstack _pack_padded_sequence repeat tile constant_pad_nd pad reflection_pad1d "
     "reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d _pad_circular "
     "pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle select_backward slice_backward "
     "diagonal_backward unfold_backward as_strided_backward unfold_copy tril triu _local_scalar_dense item cpu "
     "cuda float half bfloat16 _autocast_to_reduced_precision _autocast_to_full_precision block_diag meshgrid "
     "cartesian_prod _cast_Float _cast_Half split_copy split_with_sizes_copy resolve_conj resolve_neg "
     "_chunk_cat dequantize_4bit dequantize_blockwise int8_vectorwise_quant int8_mm_dequant fp8_cast "
     "fp8_cast_transpose fp8_cast_transpose_dbias"},
    {OpClass::random,
     "native_dropout _fused_dropout dropout feature_dropout alpha_dropout bernoulli normal uniform rand randn "
     "randint rand_like randn_like randint_like random randperm exponential geometric cauchy log_normal "
     "multinomial poisson rrelu_with_noise _standard_gamma _sample_dirichlet"},
    {OpClass::creation,
     "zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full fill zero arange linspace "
     "logspace eye scalar_tensor tril_indices triu_indices _efficientzerotensor zeros_out hann_window range"},
    {OpClass::elementwise,
     "add sub rsub mul div true_divide floor_divide remainder fmod pow float_power neg abs sign sgn sqrt rsqrt "
     "square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh "
     "asinh acosh atanh erf erfc erfinv sigmoid logit relu relu6 leaky_relu prelu _prelu_kernel elu selu celu "
     "silu mish gelu glu glu_jvp softplus softsign softshrink hardshrink tanhshrink hardtanh hardswish "
     "hardsigmoid log_sigmoid log_sigmoid_forward threshold clamp clamp_min clamp_max clip where masked_fill "
     "lerp addcmul addcdiv maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or logical_not "
     "logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor __and__ __or__ __xor__ __lshift__ __rshift__ "
     "bitwise_left_shift bitwise_right_shift isnan isinf isfinite ceil floor round trunc frac nan_to_num "
     "heaviside polar complex angle conj_physical xlogy special_xlog1py hypot lgamma digamma sinc deg2rad "
     "native_dropout_backward _fused_dropout_backward dropout_backward _masked_scale mse_loss_backward "
     "l1_loss_backward smooth_l1_loss_backward huber_loss_backward kl_div_backward "
     "binary_cross_entropy_backward soft_margin_loss_backward infinitely_differentiable_gelu "
     "rrelu_with_noise_backward cross linalg_cross cumsum_backward cumprod_backward isposinf isneginf copysign "
     "nextafter logaddexp logaddexp2 swiglu _thnn_fused_lstm_cell _thnn_fused_gru_cell _amp_update_scale"},
    {OpClass::communication,
     "all_reduce allreduce all_gather allgather _allgather_base reduce_scatter _reduce_scatter_base broadcast "
     "reduce all_to_all alltoall alltoall_base all_to_all_single send recv barrier all_gather_into_tensor "
     "reduce_scatter_tensor all_reduce_coalesced wait_tensor"},
};

using ClassTable = std::unordered_map<std::string_view, OpClass>;

const ClassTable& class_table() {
  static const ClassTable table = [] {
    ClassTable all;
    for (const auto& [cls, names] : kClasses) {
      for (size_t begin = 0; begin < names.size();) {
        const size_t end = std::min(names.find(' ', begin), names.size());
        all.emplace(names.substr(begin, end - begin), cls);
        begin = end + 1;
      }
    }
    return all;
  }();
  return table;
}

const OpClass* find_class(std::string_view base) {
  const auto found = class_table().find(base);
  return found == class_table().end() ? nullptr : &found->second;
}

std::string_view namespace_of(std::string_view name) {
  const size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix) || text.size() == suffix.size()) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::string_view base_name(std::string_view name) {
  const size_t first = name.find('.');
  if (first == std::string_view::npos) return name;
  name.remove_prefix(first + 1);
  return name.substr(0, name.find('.'));
}

std::string_view overload_name(std::string_view name) {
  const size_t first = name.find('.');
  if (first == std::string_view::npos) return {};
  const size_t second = name.find('.', first + 1);
  return second == std::string_view::npos ? std::string_view{} : name.substr(second + 1);
}

bool is_in_place(std::string_view name) {
  const std::string_view base = base_name(name);
  return base.size() > 1 && base.ends_with('_') && !base.ends_with("__");
}

bool is_backward(std::string_view name) { return base_name(name).find("_backward") != std::string_view::npos; }

OpClass op_class(std::string_view name) {
  const std::string_view space = namespace_of(name);
  if (space == "profiler") return OpClass::view;
  if (space == "c10d" || space == "_c10d_functional" || space == "c10d_functional") return OpClass::communication;
  std::string_view base = base_name(name);
  if (space == "inductor") {  // kernels that torch.compile generates (compile/compiled_iteration.h)
    return base == "reduction" ? OpClass::reduction : OpClass::elementwise;
  }
  if (const OpClass* known = find_class(base)) return *known;
  if (base.starts_with("_foreach_") || base.starts_with("_fused_adam") || base.starts_with("_fused_sgd") ||
      base.starts_with("_fused_adagrad") || base.starts_with("_amp_foreach")) {
    return OpClass::optimizer;
  }
  if (is_in_place(name)) base.remove_suffix(1);
  if (const OpClass* known = find_class(base)) return *known;
  // Gradients: the longest known name that remains when the suffixes come off one by one.
  for (const std::string_view suffix : {"_out", "_data", "_input", "_weight", "_overrideable", "_double_backward"}) {
    if (take_suffix(base, suffix)) {
      if (const OpClass* known = find_class(base)) return *known;
    }
  }
  const size_t backward = base.find("_backward");
  if (backward != std::string_view::npos) base = base.substr(0, backward);
  if (const OpClass* known = find_class(base)) return *known;
  if (take_suffix(base, "_copy") && find_class(base)) return OpClass::copy;  // view_copy, expand_copy, ...
  return OpClass::opaque;
}

std::string_view name_of(OpClass cls) {
  switch (cls) {
    case OpClass::view: return "view";
    case OpClass::gemm: return "gemm";
    case OpClass::convolution: return "convolution";
    case OpClass::attention: return "attention";
    case OpClass::rnn: return "rnn";
    case OpClass::normalization: return "normalization";
    case OpClass::elementwise: return "elementwise";
    case OpClass::reduction: return "reduction";
    case OpClass::softmax: return "softmax";
    case OpClass::pooling: return "pooling";
    case OpClass::embedding: return "embedding";
    case OpClass::indexing: return "indexing";
    case OpClass::copy: return "copy";
    case OpClass::optimizer: return "optimizer";
    case OpClass::random: return "random";
    case OpClass::creation: return "creation";
    case OpClass::communication: return "communication";
    case OpClass::opaque: return "opaque";
  }
  return "?";
}

}  // namespace forerun
