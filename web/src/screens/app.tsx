// The screens of `forerun serve`: which of them is shown, and the lists that all of them choose from.
import type {ComponentChildren} from "preact";
import {useEffect, useMemo, useState} from "preact/hooks";
import type {Served} from "../answers";
import {Api, type Problem} from "./api";
import {FaultNote, problemOf} from "./asking";
import {Cluster} from "./cluster";
import {loadLists, type Lists, type ScreenProps} from "./controls";
import {Forecast} from "./forecast";
import {History} from "./history";
import {ManyGpus} from "./many_gpus";
import {Memory} from "./memory";
import {linkTo, usePlace, type Settings} from "./place";
import {TraceScreen} from "./trace";
import {Trust} from "./trust";
import {WhatIfScreen} from "./whatif";
import {WhichGpu} from "./which_gpu";

interface Screen {
  name: string;
  title: string;
  show: (props: ScreenProps) => ComponentChildren;
  shares?: boolean;  // the settings of a run, which one takes along from screen to screen
}

const kScreens: Screen[] = [
  {name: "forecast", title: "Forecast", show: (props) => <Forecast {...props} />, shares: true},
  {name: "gpus", title: "Which GPU", show: (props) => <WhichGpu {...props} />, shares: true},
  {name: "memory", title: "Memory", show: (props) => <Memory {...props} />, shares: true},
  {name: "trace", title: "Trace", show: (props) => <TraceScreen {...props} />},
  {name: "whatif", title: "What-if", show: (props) => <WhatIfScreen {...props} />, shares: true},
  {name: "scale", title: "Many GPUs", show: (props) => <ManyGpus {...props} />},
  {name: "cluster", title: "Cluster", show: (props) => <Cluster {...props} />},
  {name: "trust", title: "Trust", show: (props) => <Trust {...props} />},
  {name: "history", title: "History", show: (props) => <History {...props} />},
];

const kNotShared = ["trace", "apply", "file", "files", "against", "of", "id", "pair"];

export function App({served}: {served: Served}) {
  const api = useMemo(() => new Api(served.api), [served]);
  const [place, change] = usePlace();
  const [lists, setLists] = useState<Lists | null>(null);
  const [fault, setFault] = useState<Problem | null>(null);
  useEffect(() => {
    loadLists(api).then(setLists, (error) => setFault(problemOf(error)));
  }, [api]);
  const screen = kScreens.find((one) => one.name === place.screen) ?? kScreens[0];
  useEffect(() => {
    document.title = `${screen?.title ?? ""} - Forerun`;
  }, [screen]);
  if (!screen) return null;
  const shared: Settings = screen.shares ? Object.fromEntries(Object.entries(place.settings).filter(([name]) => !kNotShared.includes(name))) : {};
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the answer</a>
      <header class="top served">
        <b>Forerun</b>
        <nav aria-label="Screens">
          {kScreens.map((one) => <a key={one.name} href={linkTo(one.name, one.shares ? shared : {})} aria-current={one === screen ? "page" : undefined}>{one.title}</a>)}
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        <FaultNote problem={fault} />
        {screen.show({api, lists: lists ?? {models: [], gpus: []}, settings: place.settings, change})}
      </main>
      <footer class="made"><p>Forerun {served.version}. What is asked here stays on the machine that serves this page. The address of this page holds all settings.</p></footer>
    </>
  );
}
