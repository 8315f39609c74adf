// Which GPU: the same run on all of them, with the user's own prices.
import {useEffect} from "preact/hooks";
import {CompareView, type Compared} from "../views/compare";
import {Answered, useAsk} from "./asking";
import {jobWords, pairsOf, RunControls, runWords, TextControl, withStart, type ScreenProps} from "./controls";
import {linkTo} from "./place";

export function WhichGpu(props: ScreenProps) {
  const settings = withStart(props.settings);
  const compared = useAsk<Compared>(props.api, "compare", {...runWords(settings, {gpu: false}), ...jobWords(settings)}, 120);
  const set = (name: string) => (value: string) => props.change({...settings, [name]: value});
  // Prices that were given once are kept in the store, and stand here the next time.
  useEffect(() => {
    if (settings.price) return;
    props.api.get("/prices").then((answer) => {
      const known = (answer as {prices: {gpu: string; per_hour: number}[]}).prices;
      if (known.length > 0) props.change({...settings, price: known.map((one) => `${one.gpu}=${one.per_hour}`).join(", ")});
    }, () => undefined);
  }, []);
  const setPrices = (text: string) => {
    props.change({...settings, price: text});
    for (const [gpu, price] of Object.entries(pairsOf(text))) {
      if (Number(price) > 0) void props.api.put(`/prices/${encodeURIComponent(gpu)}`, {per_hour: Number(price)}).catch(() => undefined);
    }
  };
  const explain = (gpu: string) => {
    const alias = props.lists.gpus.find((one) => one.name === gpu)?.alias ?? gpu;
    location.hash = linkTo("forecast", {...settings, gpu: alias});
  };
  return (
    <>
      <RunControls {...props} gpu={false} />
      <div class="controls second">
        <TextControl label="Your prices an hour" value={settings.price ?? ""} placeholder="h100=2.5, l4=0.7" hint="GPU=PRICE, with commas between; any currency" onChange={setPrices} />
        <TextControl label="Samples of the run" value={settings.samples ?? ""} placeholder="115M" onChange={set("samples")} />
        <TextControl label="or tokens" value={settings.tokens ?? ""} placeholder="2B" onChange={set("tokens")} />
      </div>
      <Answered asked={compared}>{(answer) => <CompareView answers={[answer]} explain={explain} />}</Answered>
    </>
  );
}
