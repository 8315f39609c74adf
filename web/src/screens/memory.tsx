// Memory: what lives at the peak, and what would let a larger batch in, with buttons that do it.
import {useState} from "preact/hooks";
import type {MemorySeries, Prediction} from "../answers";
import {bytes, percent, whole} from "../format";
import {Bars} from "../ui/bars";
import {Notes, Section} from "../ui/parts";
import {ChangeTable, FitVerdictLine, type Change, type Fit} from "../views/fit";
import {MemoryChart} from "../views/memory_chart";
import {LiveTable, MemoryParts} from "../views/predict";
import {Answered, useAsk} from "./asking";
import {memoryWords, RunControls, runWords, withStart, type ScreenProps} from "./controls";
import type {Settings} from "./place";

// The settings that a change means, from how it says to make it: "--precision amp_bf16 (torch.autocast)".
export function settingsOf(change: Change, p: Prediction): Settings | null {
  const allocator = /^PYTORCH_CUDA_ALLOC_CONF=(\S+)/.exec(change.how);
  if (allocator) return {allocator: allocator[1] ?? ""};
  const option = /^--([a-z-]+)(?: ([^\s,(]+))?/.exec(change.how);
  const name = option?.[1]?.replace(/-/g, "_"), value = option?.[2] ?? "1";
  if (!name || !["precision", "optimizer", "checkpoint", "accumulate", "channels_last", "attention", "zero", "quantize", "lora"].includes(name)) return null;
  return {[name]: name === "optimizer" ? value.replace("NAME", p.optimizer.toLowerCase()) : value};
}

export function Memory(props: ScreenProps) {
  const settings = withStart(props.settings);
  const run = {...runWords(settings), ...memoryWords(settings)};
  const predicted = useAsk<Prediction>(props.api, "predict", {...run, brief: true});
  const series = useAsk<MemorySeries>(props.api, "memory", run, 150);
  const fit = useAsk<Fit>(props.api, "fit", {...runWords(settings, {batch: false}), ...memoryWords(settings)}, 250);
  const [before, setBefore] = useState<{what: string; bytes: number} | null>(null);
  const p = predicted.answer;
  const apply = (change: Change) => {
    const next = p && settingsOf(change, p);
    if (!p || !next) return;
    setBefore({what: change.name, bytes: p.peak_reserved + p.context});
    props.change({...settings, ...next});
  };
  return (
    <>
      <RunControls {...props} memory />
      <Answered asked={predicted}>{(now) => {
        const needed = now.peak_reserved + now.context;
        return (
          <>
            {before && <p class="before" role="status">With {before.what}: {bytes(before.bytes)} before, {bytes(needed)} now, {percent(Math.abs(1 - needed / before.bytes))} {needed <= before.bytes ? "less" : "more"}.</p>}
            {fit.answer && !fit.fault && <FitVerdictLine fit={fit.answer} />}
            <Section title={`Batch ${whole(now.batch)} takes ${bytes(needed)} of ${bytes(now.device_memory)}`}>
              <MemoryParts p={now} />
              {series.answer && !series.fault && <MemoryChart series={series.answer} />}
              <LiveTable p={now} />
            </Section>
          </>
        );
      }}</Answered>
      <Answered asked={fit}>{(answer) => (
        <Section title="What would let a larger one in">
          {answer.changes.some((change) => change.largest !== null) && <Bars title="Largest batch with each change" unit="batch" bars={[
            {name: "as it is", value: answer.largest ?? 0, text: answer.largest === null ? "none" : whole(answer.largest), tone: "faint"},
            ...answer.changes.filter((change) => change.largest !== null).map((change) => ({name: change.name, value: change.largest ?? 0, text: whole(change.largest ?? 0)}))]} />}
          {answer.changes.length > 0 && p && <ChangeTable changes={answer.changes} apply={(change) => settingsOf(change, p) ? apply : null} />}
          <Notes title="Assumptions" notes={answer.prediction.assumptions ?? []} />
        </Section>
      )}</Answered>
    </>
  );
}
