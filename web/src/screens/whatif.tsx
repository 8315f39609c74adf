// What-if: every optimization ranked, and several of them together.
import {useEffect, useState} from "preact/hooks";
import {WhatIfView, type WhatIf} from "../views/whatif";
import {Answered, useAsk} from "./asking";
import {RunControls, runWords, withStart, type ScreenProps} from "./controls";

interface Optimization {
  name: string;
  summary: string;
  parameters: string[];
}

export function WhatIfScreen(props: ScreenProps) {
  const [optimizations, setOptimizations] = useState<Optimization[]>([]);
  useEffect(() => {
    props.api.get("/optimizations").then((answer) => setOptimizations(answer as Optimization[]), () => undefined);
  }, []);
  const upload = /^[0-9a-f]{64}$/.test(props.settings.trace ?? "") ? props.settings.trace ?? "" : "";
  const settings = upload ? props.settings : withStart(props.settings);
  const words = upload ? {model: `upload:${upload}`} : runWords(settings);
  const chosen = (settings.apply ?? "").split(",").filter((name) => name !== "");
  const ranking = useAsk<WhatIf[] | WhatIf>(props.api, "whatif", {...words, all: true}, 200);
  const together = useAsk<WhatIf>(props.api, "whatif", chosen.length > 0 ? {...words, apply: chosen} : null, 100);
  const toggle = (name: string) => props.change({...settings, apply: (chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]).join(",")});
  const ranked = ranking.answer === null ? [] : Array.isArray(ranking.answer) ? ranking.answer : [ranking.answer];
  const names = new Set(ranked.map((one) => one.applied[0] ?? ""));
  return (
    <>
      {upload ? <p class="note">Of an uploaded trace. <a href="#whatif">Ask of a model instead</a></p> : <RunControls {...props} />}
      {names.size > 0 && (
        <fieldset class="choices">
          <legend>Together, in this order</legend>
          {[...names].map((name) => {
            const about = optimizations.find((one) => one.name === name.split(":")[0]);
            return <label key={name} title={about?.summary}><input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} /> {name}</label>;
          })}
        </fieldset>
      )}
      {chosen.length > 0 && <Answered asked={together}>{(answer) => <WhatIfView answers={[answer]} />}</Answered>}
      <Answered asked={ranking}>{(answer) => chosen.length > 0 ? <details class="ranked"><summary><h2>Each alone</h2></summary><WhatIfView answers={Array.isArray(answer) ? answer : [answer]} heading={false} /></details> : <WhatIfView answers={Array.isArray(answer) ? answer : [answer]} />}</Answered>
    </>
  );
}
