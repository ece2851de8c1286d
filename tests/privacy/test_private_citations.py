"""Citations of a private model: quotes stay out of traces and errors, as texts do."""

import pytest
from langchain_core.tracers.base import BaseTracer

from langchain_svc import ChatSvc, SvcOutputError
from langchain_svc.sandbox import Sandbox

NAME = "Rosalind-Marked"
DOCUMENT = f"{NAME} has asthma since spring."
QUESTION = f"What does {NAME} have?"


class Tracer(BaseTracer):
    """Keeps every run as LangSmith's tracer would send it."""

    def __init__(self):
        super().__init__()
        self.runs = []

    def _persist_run(self, run):
        self.runs.append(run.model_dump_json() if hasattr(run, "model_dump_json") else repr(run))


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_traces_hold_no_quote(way):
    tracer = Tracer()
    with Sandbox() as sandbox, ChatSvc(**sandbox.v1, privacy="phi") as model:
        cited = model.with_citations([DOCUMENT])
        config = {"callbacks": [tracer]}
        if way == "invoke":
            text = cited.invoke(QUESTION, config).text
        else:
            text = "".join(chunk.text for chunk in cited.stream(QUESTION, config))
    assert text == DOCUMENT
    assert tracer.runs
    assert NAME not in "".join(tracer.runs)


def test_an_error_holds_no_statement():
    answers = [f"So it is <cite id='1'>{NAME} never wrote that</cite>", "1. NONE"]
    with Sandbox(answers=answers) as sandbox, ChatSvc(**sandbox.v1, privacy="phi") as model:
        cited = model.with_citations([DOCUMENT], unsupported="error")
        with pytest.raises(SvcOutputError) as raised:
            cited.invoke(QUESTION)
    error = raised.value
    assert NAME not in f"{error!r} {error} {vars(error)}"
    assert "So it is" not in f"{error.raw} {error.problems}"
