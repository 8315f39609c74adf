// Where one is: a screen and its settings, all of it in the address, so that a link holds everything: #forecast?model=resnet50&batch=64.
import {useEffect, useState} from "preact/hooks";

export type Settings = Record<string, string>;

export interface Place {
  screen: string;
  settings: Settings;
}

export function placeOf(hash: string): Place {
  const [screen = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  return {screen, settings: Object.fromEntries(new URLSearchParams(query))};
}

export function linkTo(screen: string, settings: Settings): string {
  const kept = Object.entries(settings).filter(([, value]) => value !== "");
  return `#${screen}${kept.length ? `?${new URLSearchParams(kept)}` : ""}`;
}

export function usePlace(): [Place, (change: Settings) => void] {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const moved = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  // What changes while one drags a slider replaces the place; what is chosen can be gone back from.
  const change = (settings: Settings) => {
    const next = {...placeOf(location.hash).settings, ...settings};
    const link = linkTo(placeOf(location.hash).screen || "forecast", next);
    history.replaceState(null, "", link);
    setPlace(placeOf(link));
  };
  return [place, change];
}
