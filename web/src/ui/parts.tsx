// Pieces that every report is made of: the sentence on top, its figures, what was assumed, what made it.
import type {ComponentChildren} from "preact";
import {useState} from "preact/hooks";
import {bytes, day, percent} from "../format";

export type Tone = "good" | "warn" | "bad" | "plain";

export function Verdict({tone = "plain", children, below}: {tone?: Tone; children: ComponentChildren; below?: ComponentChildren}) {
  return (
    <div class={`verdict ${tone}`}>
      <h1>{children}</h1>
      {below && <p>{below}</p>}
    </div>
  );
}

export interface Fact {
  name: string;
  value: string;
  more?: string;
}

export function Facts({facts}: {facts: (Fact | null | undefined | false)[]}) {
  return (
    <dl class="facts">
      {facts.map((fact) => fact && (
        <div key={fact.name}>
          <dt>{fact.name}</dt>
          <dd>{fact.value}{fact.more && <span class="more">{fact.more}</span>}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Notes({title, notes, open = false}: {title: string; notes: string[]; open?: boolean}) {
  if (notes.length === 0) return null;
  return (
    <details class="notes" open={open}>
      <summary><h2>{title}</h2><span class="count">{notes.length}</span></summary>
      <ul>{notes.map((note, i) => <li key={i}>{note}</li>)}</ul>
    </details>
  );
}

export function Warnings({warnings}: {warnings?: string[]}) {
  if (!warnings || warnings.length === 0) return null;
  return <div class="warnings" role="note">{warnings.map((text, i) => <p key={i}>{text}</p>)}</div>;
}

export function Section({title, children}: {title: string; children: ComponentChildren}) {
  return <section class="section"><h2>{title}</h2>{children}</section>;
}

export interface Share {
  name: string;
  value: number;
  colour: string;
}

// One bar cut into parts, against a whole where there is one.
export function Stack({label, shares, whole, text = bytes}: {label: string; shares: Share[]; whole?: number; text?: (value: number) => string}) {
  const sum = shares.reduce((total, share) => total + share.value, 0);
  const end = Math.max(whole ?? sum, sum, 1e-12);
  const kept = shares.filter((share) => share.value > 0);
  return (
    <div class="stack">
      <div class="strip" role="img" aria-label={`${label}: ${kept.map((share) => `${share.name} ${text(share.value)}`).join(", ")}`}>
        {kept.map((share) => (
          <span key={share.name} class={`c-${share.colour}`} style={{width: `${(100 * share.value) / end}%`}}
            title={`${share.name}: ${text(share.value)}, ${percent(share.value / end)}`} />
        ))}
      </div>
      <ul class="legend">
        {kept.map((share) => <li key={share.name}><span class={`swatch c-${share.colour}`} />{share.name} <b>{text(share.value)}</b></li>)}
      </ul>
    </div>
  );
}

export function Copy({text, label}: {text: string; label: string}) {
  const [done, setDone] = useState(false);
  return (
    <button type="button" class="quiet" onClick={() => {
      void navigator.clipboard?.writeText(text).then(() => setDone(true));
      setTimeout(() => setDone(false), 1500);
    }}>{done ? "Copied" : label}</button>
  );
}

export function MadeBy({command, made, version}: {command: string; made: string; version: string}) {
  return (
    <footer class="made">
      <div class="command"><code>{command}</code><Copy text={command} label="Copy" /></div>
      <p>Forerun {version}{made && <>, {day(made)}</>}. This file asks no network for anything.</p>
    </footer>
  );
}
