// An answer that follows its question: asked again when words change, the last answer stays until the next is there.
import type {ComponentChildren} from "preact";
import {useLayoutEffect, useRef, useState} from "preact/hooks";
import {Fault, type Api, type Problem, type Words} from "./api";

export interface Asked<T> {
  answer: T | null;
  fault: Problem | null;
  busy: boolean;
  took: number;  // milliseconds, of the last answer
}

export function problemOf(error: unknown): Problem {
  return error instanceof Fault ? error.problem : {title: String(error), detail: "", where: "", remedy: ""};
}

export function useAsk<T>(api: Api, question: string, words: Words | null, wait = 0): Asked<T> {
  const [state, setState] = useState<Asked<T>>({answer: null, fault: null, busy: words !== null, took: 0});
  const key = words === null ? "" : JSON.stringify(words);
  const first = useRef(true);
  // Not useEffect, which waits for the next picture: the question is on its way before that is drawn.
  useLayoutEffect(() => {
    if (words === null) return;
    const control = new AbortController();
    setState((now) => ({...now, busy: true}));
    const begin = performance.now();
    const ask = () => void api.ask(question, words, control.signal).then(
      (answer) => {
        if (!control.signal.aborted) setState({answer: answer as T, fault: null, busy: false, took: performance.now() - begin});
      },
      (error) => {
        if (!control.signal.aborted) setState((now) => ({...now, fault: problemOf(error), busy: false, took: 0}));
      });
    const timer = first.current || wait === 0 ? 0 : window.setTimeout(ask, wait);
    if (timer === 0) ask();
    first.current = false;
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [question, key]);
  return state;
}

// Of two askings of the same, the quick one and the whole one, the answer that came last: what is shown changes only when one comes.
export function useLatest<T>(quick: Asked<T>, whole: Asked<T>): Asked<T> {
  const before = useRef<{quick: T | null; whole: T | null; shown: T | null}>({quick: null, whole: null, shown: null});
  const now = before.current;
  if (quick.answer !== now.quick) now.shown = now.quick = quick.answer;
  if (whole.answer !== now.whole) now.shown = now.whole = whole.answer;
  return {...quick, answer: now.shown};
}

export function FaultNote({problem}: {problem: Problem | null}) {
  if (!problem) return null;
  return (
    <div class="fault" role="alert">
      <p><b>{problem.where && `${problem.where}: `}{problem.detail || problem.title}</b></p>
      {problem.remedy && <p>{problem.remedy}</p>}
    </div>
  );
}

// The answer, dimmed while the next one is on its way.
export function Answered<T>({asked, children}: {asked: Asked<T>; children: (answer: T) => ComponentChildren}) {
  return (
    <div class={asked.busy ? "answer busy" : "answer"} aria-busy={asked.busy}>
      <FaultNote problem={asked.fault} />
      {asked.answer !== null && !asked.fault && children(asked.answer)}
      {asked.answer === null && !asked.fault && <p class="note">Asking ...</p>}
    </div>
  );
}
