// Forecast: a model on a GPU, answered as its settings change.
import type {MemorySeries, OpSeries, Prediction} from "../answers";
import {Warnings} from "../ui/parts";
import {PredictBody, PredictFacts, PredictVerdict} from "../views/predict";
import {useMemo, useState} from "preact/hooks";
import type {Api, Problem, Words} from "./api";
import {Answered, FaultNote, problemOf, useAsk, useLatest} from "./asking";
import {memoryWords, RunControls, runWords, withStart, type ScreenProps} from "./controls";

// Keeps the answer in the store of the server, where History finds it.
function Keep({api, words}: {api: Api; words: Words}) {
  const key = JSON.stringify(words);
  const [kept, setKept] = useState("");
  const [fault, setFault] = useState<Problem | null>(null);
  const keep = () => api.post("/predict?keep=true", words).then(() => { setKept(key); setFault(null); }, (error) => setFault(problemOf(error)));
  return (
    <div class="keep">
      <button type="button" class="quiet" disabled={kept === key} onClick={() => void keep()}>{kept === key ? "Kept" : "Keep this forecast"}</button>
      <FaultNote problem={fault} />
    </div>
  );
}

export function Forecast(props: ScreenProps) {
  const settings = withStart(props.settings);
  const words = {...runWords(settings), ...memoryWords(settings)};
  const asked = settings.compile ? {...words, compile: settings.compile} : words;
  // The answer at once, and with what would take away a bound by the host as soon as one lets go of a control.
  const quick = useAsk<Prediction>(props.api, "predict", {...asked, brief: true});
  const whole = useAsk<Prediction>(props.api, "predict", asked, 300);
  const predicted = useLatest(quick, whole);
  const memory = useAsk<MemorySeries>(props.api, "memory", words, 200);
  const ops = useAsk<OpSeries>(props.api, "ops", words, 200);
  const series = useMemo(() => ({...(memory.answer && !memory.fault ? {memory: memory.answer} : {}), ...(ops.answer && !ops.fault ? {ops: ops.answer} : {})}), [memory.answer, memory.fault, ops.answer, ops.fault]);
  // Drawn again only when an answer comes, not with every move of a control.
  const drawn = useMemo(() => predicted.answer && <><Warnings warnings={predicted.answer.warnings} /><PredictVerdict p={predicted.answer} /><PredictFacts p={predicted.answer} /><PredictBody p={predicted.answer} series={series} /></>, [predicted.answer, series]);
  return (
    <>
      <RunControls {...props} memory compile />
      <Keep api={props.api} words={asked} />
      <Answered asked={predicted}>{() => drawn}</Answered>
    </>
  );
}
