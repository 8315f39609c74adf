// Many GPUs: how a model spreads, by one plan over several numbers of GPUs or by a search for the best one.
import {ScaleView, type Scale} from "../views/scale";
import {Answered, useAsk} from "./asking";
import {gpuOptions, jobWords, kPrecisions, NumberControl, pairsOf, SelectControl, TextControl, type ScreenProps} from "./controls";
import type {Words} from "./api";
import type {Settings} from "./place";

const kNumbers = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

export function ManyGpus(props: ScreenProps) {
  const settings: Settings & Record<"model" | "gpu" | "gpus" | "plan" | "global_batch", string> = {model: "gpt2_xl", gpu: "h200", gpus: "64", plan: "search", global_batch: "512", ...props.settings};
  const set = (name: string) => (value: string) => props.change({...settings, [name]: value});
  const most = Number(settings.gpus);
  const search = settings.plan === "search";
  const words: Words = {model: settings.model, gpu: settings.gpu, ...jobWords({...settings, price: ""})};
  if (settings.price && Number(settings.price) > 0) words.price = {[settings.gpu]: Number(settings.price)};
  words.gpus = search ? most : kNumbers.filter((count) => count <= most);
  if (search) words.search = true;
  else words.strategy = settings.plan;
  if (search && settings.global_batch) words.global_batch = Number(settings.global_batch);
  if (settings.micro_batch) words.micro_batch = Number(settings.micro_batch);
  if (settings.network) words.network = settings.network;
  if (settings.precision) words.precision = settings.precision;
  if (settings.set) words.set = pairsOf(settings.set);
  const scaled = useAsk<Scale>(props.api, "scale", words, 200);
  return (
    <>
      <form class="controls" aria-label="Settings" onSubmit={(event) => event.preventDefault()}>
        <TextControl label="Model" value={settings.model} list={props.lists.models} onChange={set("model")} />
        <SelectControl label="GPU" value={settings.gpu} options={gpuOptions(props.lists)} onChange={set("gpu")} />
        <NumberControl label={search ? "GPUs" : "Up to GPUs"} value={settings.gpus} most={1024} onChange={set("gpus")} />
        <SelectControl label="Plan" value={settings.plan} options={[["search", "search the best"], ["dp", "data parallel"], ["zero1", "ZeRO 1"], ["zero2", "ZeRO 2"], ["zero3", "ZeRO 3"]]} onChange={set("plan")} />
        {search && <NumberControl label="Samples a step" value={settings.global_batch} most={65536} onChange={set("global_batch")} />}
        <TextControl label="Micro-batch" value={settings.micro_batch ?? ""} placeholder="as usual" onChange={set("micro_batch")} />
        <SelectControl label="Precision" value={settings.precision ?? ""} options={[["", "as usual"], ...kPrecisions.slice(1)]} onChange={set("precision")} />
        <TextControl label="Network of a node" value={settings.network ?? ""} placeholder="as usual" onChange={set("network")} />
        <TextControl label="Samples of the run" value={settings.samples ?? ""} placeholder="1M" onChange={set("samples")} />
        <TextControl label="Price of a GPU an hour" value={settings.price ?? ""} placeholder="2.5" onChange={set("price")} />
      </form>
      <Answered asked={scaled}>{(answer) => <ScaleView answers={[answer]} />}</Answered>
    </>
  );
}
