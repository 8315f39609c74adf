#include "ingest/trace/communication_names.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(CommunicationNames, KernelsThatSendAreKnownByName) {
  for (const char* kernel :
       {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE",
        "mscclKernel_Sum_hip_bfloat16_Simple_false",
        "rcclGenericKernel",
        "oneccl_allreduce_large",
        "nvshmemi_proxy_rma_entrypoint_blocking",
        "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)",
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(__nv_bfloat16*)",
        "void primus_turbo::deep_ep::intranode::notify_dispatch<8>(int const*)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8, false>",
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8, true, false>",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1, __nv_bfloat16, 8>",
        "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<__half>, __half>",
        "two_shot_all_reduce_kernel<float, 16, 8>",
        "multimem_one_shot_all_reduce_kernel",
        "kuserbuffers_pushrecv",
        "moeA2ADispatchKernel",
        "EpDispatchIntraNodeKernel_bf16",
        "void mscclpp::allreduce7<__half>"}) {
    EXPECT_TRUE(names_communication(kernel)) << kernel;
  }
}

TEST(CommunicationNames, OthersCompute) {
  for (const char* kernel :
       {"ampere_sgemm_128x64_nn", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>", "smallReduceKernel", "indexSelectSmallGather",
        "void moe_combine_kernel<half>", "flash_fwd_splitkv_combine_kernel", "stepCombine", "Memcpy PtoP"}) {
    EXPECT_FALSE(names_communication(kernel)) << kernel;
  }
}

TEST(CommunicationNames, ProcessGroupsMarkTheirCalls) {
  EXPECT_TRUE(names_group_call("nccl:all_reduce"));
  EXPECT_TRUE(names_group_call("gloo:broadcast"));
  EXPECT_TRUE(names_group_call("record_param_comms"));
  EXPECT_FALSE(names_group_call("aten::copy_"));
}

}  // namespace
}  // namespace forerun
