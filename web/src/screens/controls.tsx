// The choices that screens share: a model, a GPU, and how it is trained. A change goes into the address at once.
import {useEffect, useState} from "preact/hooks";
import type {Api, Words} from "./api";
import type {Settings} from "./place";

export interface Lists {
  models: string[];
  gpus: {name: string; alias: string}[];
}

interface ModelRow {
  family?: string;
  name?: string;
  models?: (string | {name: string})[];
  checkpoints?: (string | {name: string})[];
}

const nameOf = (one: string | {name: string}): string => typeof one === "string" ? one : one.name;

export async function loadLists(api: Api): Promise<Lists> {
  const [models, devices] = await Promise.all([api.get("/models"), api.get("/devices")]) as [ModelRow[], {name: string; aliases: string[]}[]];
  const names = models.flatMap((row) => [...(row.models ?? []), ...(row.checkpoints ?? [])].map(nameOf));
  return {models: [...new Set(names)], gpus: devices.map((device) => ({name: device.name, alias: device.aliases[0] ?? device.name}))};
}

export interface ScreenProps {
  api: Api;
  lists: Lists;
  settings: Settings;
  change: (settings: Settings) => void;
}

// A text that is taken when one leaves it or presses Enter: half a name is no question.
export function TextControl({label, value, placeholder = "", list, hint, onChange}: {label: string; value: string; placeholder?: string; list?: string[]; hint?: string; onChange: (value: string) => void}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const id = `list-${label.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  const take = (next: string) => {
    if (next.trim() !== value) onChange(next.trim());
  };
  return (
    <label class="control">
      <span>{label}</span>
      <input type="text" value={text} placeholder={placeholder} list={list ? id : undefined} title={hint} spellcheck={false} autocomplete="off"
        onInput={(event) => {
          const next = event.currentTarget.value;
          setText(next);
          if (list?.includes(next)) take(next);
        }}
        onBlur={() => take(text)} onKeyDown={(event) => event.key === "Enter" && take(text)} />
      {list && <datalist id={id}>{list.map((name) => <option key={name} value={name} />)}</datalist>}
    </label>
  );
}

export function SelectControl({label, value, options, onChange}: {label: string; value: string; options: [string, string][]; onChange: (value: string) => void}) {
  return (
    <label class="control">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([key, text]) => <option key={key} value={key}>{text}</option>)}
      </select>
    </label>
  );
}

// A number by hand, or by a slider over its powers of two.
export function NumberControl({label, value, least = 1, most = 4096, onChange}: {label: string; value: string; least?: number; most?: number; onChange: (value: string) => void}) {
  const number = Number(value);
  const valid = value !== "" && Number.isFinite(number) && number >= least;
  const place = valid ? Math.log2(number) : 0;
  return (
    <div class="control number">
      <label><span>{label}</span>
        <input type="number" min={least} value={value} onInput={(event) => {
          const next = event.currentTarget.value;
          if (next !== "" && Number(next) >= least && Number.isInteger(Number(next))) onChange(next);
        }} />
      </label>
      <input type="range" aria-label={`${label}, slider`} min={Math.log2(least)} max={Math.log2(most)} step="0.25" value={place}
        onInput={(event) => onChange(String(Math.round(2 ** Number(event.currentTarget.value))))} />
    </div>
  );
}

export function FlagControl({label, value, onChange}: {label: string; value: string; onChange: (value: string) => void}) {
  return (
    <label class="control flag">
      <input type="checkbox" checked={value === "1"} onChange={(event) => onChange(event.currentTarget.checked ? "1" : "")} />
      <span>{label}</span>
    </label>
  );
}

export const kPrecisions: [string, string][] = [["", "as usual (fp32)"], ["fp32", "fp32"], ["tf32", "tf32"], ["amp_bf16", "amp, bf16"], ["amp_fp16", "amp, fp16"], ["bf16", "bf16"], ["fp16", "fp16"]];
const kOptimizers: [string, string][] = [["", "as usual"], ["sgd", "SGD"], ["adam", "Adam"], ["adamw", "AdamW"], ["adamw:impl=fused", "AdamW, fused"], ["rmsprop", "RMSprop"], ["adagrad", "Adagrad"]];
const kCompiled: [string, string][] = [["", "no"], ["default", "default"], ["reduce-overhead", "reduce-overhead"], ["max-autotune", "max-autotune"], ["max-autotune-no-cudagraphs", "max-autotune, no graphs"]];
const kCheckpoints: [string, string][] = [["", "none"], ["block", "each block"], ["selective", "selective"]];

export const kStart: Settings = {model: "resnet50", gpu: "h200", batch: "64"};

export function withStart(settings: Settings): Settings {
  return settings.model ? settings : {...kStart, ...settings};
}

export const gpuOptions = (lists: Lists): [string, string][] => lists.gpus.map((gpu) => [gpu.alias, gpu.name]);

// "image=384, layers=12" as {"image": "384", "layers": "12"}; a value may have commas of its own, 3,4,6,3.
export function pairsOf(text: string): Record<string, string> {
  const pairs: Record<string, string> = {};
  let last = "";
  for (const part of text.split(",").map((one) => one.trim()).filter((one) => one !== "")) {
    const at = part.indexOf("=");
    if (at > 0) {
      last = part.slice(0, at).trim();
      pairs[last] = part.slice(at + 1).trim();
    } else if (last) {
      pairs[last] += `,${part}`;
    }
  }
  return pairs;
}

// The settings of a run as words of a question.
export function runWords(settings: Settings, {batch = true, gpu = true} = {}): Words {
  const words: Words = {model: settings.model};
  if (gpu && settings.gpu) words.gpu = settings.gpu;
  if (batch && settings.batch) words.batch = Number(settings.batch);
  for (const name of ["precision", "optimizer", "checkpoint", "lora", "quantize", "attention"]) if (settings[name]) words[name] = settings[name];
  if (settings.accumulate && settings.accumulate !== "1") words.accumulate = Number(settings.accumulate);
  if (settings.channels_last === "1") words.channels_last = true;
  if (settings.set) words.set = pairsOf(settings.set);
  return words;
}

export function memoryWords(settings: Settings): Words {
  const words: Words = {};
  if (settings.allocator) words.allocator = settings.allocator;
  if (settings.zero && settings.zero !== "0") words.zero = Number(settings.zero);
  if (words.zero && settings.gpus) words.gpus = Number(settings.gpus);
  return words;
}

// How long the run is and what an hour costs.
export function jobWords(settings: Settings): Words {
  const words: Words = {};
  if (settings.samples) words.samples = settings.samples;
  if (settings.tokens) words.tokens = settings.tokens;
  const prices = Object.entries(pairsOf(settings.price ?? "")).map(([gpu, price]): [string, number] => [gpu, Number(price)]).filter(([, price]) => price > 0);
  if (prices.length > 0) words.price = Object.fromEntries(prices);
  return words;
}

const kMore = ["precision", "optimizer", "checkpoint", "accumulate", "channels_last", "lora", "quantize", "attention", "set", "zero", "gpus", "allocator"];

export function RunControls({lists, settings, change, batch = true, gpu = true, memory = false, compile = false}: ScreenProps & {batch?: boolean; gpu?: boolean; memory?: boolean; compile?: boolean}) {
  const set = (name: string) => (value: string) => change({...withStart(settings), [name]: value});
  const of = withStart(settings);
  const text = (name: string) => of[name] ?? "";
  return (
    <form class="controls" onSubmit={(event) => event.preventDefault()} aria-label="Settings">
      <TextControl label="Model" value={text("model")} list={lists.models} hint="A name of the zoo or a public checkpoint"
        onChange={(model) => change({...of, model, set: ""})} />
      {gpu && <SelectControl label="GPU" value={text("gpu") || "h200"} options={gpuOptions(lists)} onChange={set("gpu")} />}
      {batch && <NumberControl label="Batch" value={text("batch")} onChange={set("batch")} />}
      <SelectControl label="Precision" value={text("precision")} options={kPrecisions} onChange={set("precision")} />
      <SelectControl label="Optimizer" value={text("optimizer")} options={kOptimizers.some(([key]) => key === text("optimizer")) ? kOptimizers : [...kOptimizers, [text("optimizer"), text("optimizer")]]} onChange={set("optimizer")} />
      {compile && <SelectControl label="torch.compile" value={text("compile")} options={kCompiled} onChange={set("compile")} />}
      <details class="moreset" open={kMore.slice(2).some((name) => text(name) !== "")}>
        <summary>More</summary>
        <div>
          <SelectControl label="Checkpointing" value={text("checkpoint")} options={kCheckpoints} onChange={set("checkpoint")} />
          <NumberControl label="Accumulate" value={text("accumulate") || "1"} most={256} onChange={set("accumulate")} />
          <SelectControl label="Attention" value={text("attention")} options={[["", "as usual"], ["sdpa", "sdpa"], ["flash", "flash"], ["eager", "eager"]]} onChange={set("attention")} />
          <TextControl label="LoRA rank" value={text("lora")} placeholder="16" onChange={set("lora")} />
          <SelectControl label="Quantize frozen" value={text("quantize")} options={[["", "no"], ["nf4", "nf4"], ["fp4", "fp4"], ["int8", "int8"]]} onChange={set("quantize")} />
          <TextControl label="Parameters" value={text("set")} placeholder="image=384" hint="NAME=VALUE of the model's family, with commas between" onChange={set("set")} />
          <FlagControl label="Channels last" value={text("channels_last")} onChange={set("channels_last")} />
          {memory && <SelectControl label="ZeRO" value={text("zero")} options={[["", "no"], ["1", "1"], ["2", "2"], ["3", "3 (FSDP)"]]} onChange={set("zero")} />}
          {memory && text("zero") !== "" && <NumberControl label="GPUs that share" value={text("gpus") || "8"} least={2} most={1024} onChange={set("gpus")} />}
          {memory && <TextControl label="Allocator" value={text("allocator")} placeholder="expandable_segments:True" onChange={set("allocator")} />}
        </div>
      </details>
    </form>
  );
}
