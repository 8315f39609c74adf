// The page: a report with its data in it, or, where a server gave it, the screens that ask that server.
import {Component, render, type ComponentChildren} from "preact";
import type {Report, Served} from "./answers";
import {Api} from "./screens/api";
import {App} from "./screens/app";
import {PerfettoPage} from "./screens/perfetto";
import {MadeBy} from "./ui/parts";
import {AnswerView} from "./views/views";

// What a view cannot draw is said, and the data stays in the page.
class Guard extends Component<{children: ComponentChildren}, {fault: string}> {
  override state = {fault: ""};
  override componentDidCatch(error: unknown) {
    this.setState({fault: String(error)});
  }
  override render() {
    if (!this.state.fault) return this.props.children;
    return <p role="alert">This page cannot draw its data ({this.state.fault}). `--json` prints the same answer.</p>;
  }
}

function ReportPage({report}: {report: Report}) {
  return (
    <>
      <header class="top"><b>Forerun</b><span>{report.verb}</span></header>
      <main><Guard><AnswerView report={report} /></Guard></main>
      <MadeBy command={report.command} made={report.made} version={report.version} />
    </>
  );
}

function ServedPage({served}: {served: Served}) {
  return location.pathname === "/perfetto" ? <PerfettoPage api={new Api(served.api)} /> : <App served={served} />;
}

const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}") as Report | Served;
const root = document.getElementById("page");
if (root) render("answers" in data ? <ReportPage report={data} /> : <Guard><ServedPage served={data} /></Guard>, root);
