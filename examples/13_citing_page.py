"""A page that shows an agent's answer with footnotes while it streams: its events are AG-UI's.

Open the address that it prints. Ctrl-C ends it.
"""

import re
from pathlib import Path
from typing import Any

from _service import needed, serve, service
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.tools import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver

from langchain_svc import ChatSvc, SvcCitations
from langchain_svc.cli.tour import Bm25Retriever
from langchain_svc.sandbox import ToolCall

fastapi = needed("fastapi", extras="dropin,test")
ag_ui = needed("ag_ui_langgraph", extras="dropin,test")

HANDBOOK = [
    Document(text, metadata={"title": title, "source": f"{title.lower()}.md"})
    for title, text in {
        "Leave": "Each employee has 28 days of paid leave a year. Unused days expire in March.",
        "Hotels": "Hotels are reimbursed up to 140 euros a night.",
    }.items()
]


def model_of(request: Any) -> str | ToolCall:
    """A model that searches, and cites twice rightly, once a wrong number, once made-up words."""
    messages = request.json["messages"]
    passage = re.search(r'passage id="(1-\w+)"', messages[-1]["content"])
    if passage is None:  # its first turn, or the question about made-up words
        search = ToolCall("search_handbook", {"query": "paid leave, hotels"})
        return "1. NONE" if messages[1:] else search
    mark = f'<cite id="{passage[1]}">'
    return (
        f"You have 28 days of paid leave a year {mark}28 days of paid leave a year</cite>. "
        f"What is left of them expires in March {mark}Unused days expire in March</cite>. "
        f"A hotel may cost 180 euros a night {mark}up to 140 euros a night</cite>. "
        f"You may also sell unused days {mark}Days may be sold</cite>."
    )


search = create_retriever_tool(
    Bm25Retriever(passages=HANDBOOK),
    "search_handbook",
    "Searches the handbook of employees.",
    response_format="content_and_artifact",
)
app = fastapi.FastAPI()
page = Path(__file__).with_suffix(".html").read_text("utf-8")
app.get("/", response_class=fastapi.responses.HTMLResponse)(lambda: page)

with service(answers=model_of, pace=0.05) as where, ChatSvc(**where) as model:
    agent = create_agent(
        model, [search], middleware=[SvcCitations()], checkpointer=InMemorySaver()
    )
    handbook = ag_ui.LangGraphAgent(name="handbook", graph=agent)
    ag_ui.add_langgraph_fastapi_endpoint(app, handbook, "/agent")
    serve(app)
