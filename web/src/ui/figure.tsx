// The frame of every chart: its title, what it shows, and the buttons that save it as PNG and CSV.
import type {ComponentChildren} from "preact";
import {useEffect, useRef, useState} from "preact/hooks";
import {type Cell, saveCsv, savePng} from "./download";

export interface Csv {
  header: string[];
  rows: () => Cell[][];
}

interface FigureProps {
  title: string;
  note?: string;
  csv: Csv;
  children: ComponentChildren;
}

export function Figure({title, note = "", csv, children}: FigureProps) {
  const frame = useRef<HTMLDivElement>(null);
  return (
    <figure class="figure">
      <figcaption>
        <div>
          <h3>{title}</h3>
          {note && <p class="note">{note}</p>}
        </div>
        <div class="saves">
          <button type="button" class="quiet" aria-label={`Save ${title} as PNG`}
            onClick={() => frame.current && void savePng(title, note, frame.current)}>PNG</button>
          <button type="button" class="quiet" aria-label={`Save ${title} as CSV`}
            onClick={() => saveCsv(title, csv.header, csv.rows())}>CSV</button>
        </div>
      </figcaption>
      <div ref={frame} class="drawing">{children}</div>
    </figure>
  );
}

// The width that the parent gives, as it changes.
export function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  return [ref, width] as const;
}

// Colours of charts follow the page's: they are read again when it turns dark or light.
export function useScheme(): string {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const [scheme, setScheme] = useState(dark.matches ? "dark" : "light");
  useEffect(() => {
    const change = () => setScheme(dark.matches ? "dark" : "light");
    dark.addEventListener("change", change);
    return () => dark.removeEventListener("change", change);
  }, []);
  return scheme;
}

export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
