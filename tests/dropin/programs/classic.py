"""langchain-classic: its agents and chains."""

from __future__ import annotations

import json

import pytest
from common import BROKEN, ONE_TWO, THREE_FOUR, add, store
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.tools import tool
from player import Play, calls, on_both, same
from pydantic import ValidationError
from registry import program

from langchain_svc import SvcRequestError

PROMPT = ChatPromptTemplate.from_messages(
    [("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
)
TEXTS = ["The sea is blue.", "Grass is green."]


@tool
def length(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


def executor(make, tools=(add,), **words):
    from langchain_classic.agents import AgentExecutor

    def run(model):
        agent = make(model, list(tools), **words)
        made = AgentExecutor(agent=agent, tools=list(tools), handle_parsing_errors=False)
        return made.invoke({"input": "x"})["output"]

    return run


@program("AgentExecutor: tool-calling agents", "langchain-classic")
def tool_agents():
    """create_tool_calling_agent, create_openai_tools_agent: a good call; a wrong name and an
    unreadable call, from which the run recovers. A missing argument raises the tool's
    ValidationError, as with ChatOpenAI; `handle_validation_error=True` goes on. The legacy
    `functions` of create_openai_functions_agent are rejected, and the error names the agent to
    use.
    """
    from langchain_classic import agents

    for make in (agents.create_tool_calling_agent, agents.create_openai_tools_agent):
        run = executor(make, prompt=PROMPT)
        same(on_both([calls(ONE_TWO, THREE_FOUR), "3 and 7"], run)[0], "3 and 7")
        same(on_both([calls(("ad", {"a": 1, "b": 2})), "recovered"], run)[0], "recovered")
        with Play([BROKEN, calls(ONE_TWO), "3"]) as play:
            same(run(play.svc()), "3")
        missing = [calls(("add", {"a": 1})), "recovered"]
        for model in (Play.svc, Play.openai):
            with Play(missing) as play, pytest.raises(ValidationError):
                run(model(play))
        told = add.model_copy(update={"handle_validation_error": True})
        same(on_both(missing, executor(make, (told,), prompt=PROMPT))[0], "recovered")
    with (
        Play([]) as play,
        pytest.raises((SvcRequestError, TypeError), match="create_tool_calling_agent"),
    ):
        executor(agents.create_openai_functions_agent, prompt=PROMPT)(play.svc())
    assert not play.requests


@program("AgentExecutor: ReAct, structured chat, JSON and XML agents", "langchain-classic")
def text_agents():
    """Agents of plain text, which rely on `stop`. (The XML agent's own stop sequence cuts the tag
    that its parser wants.)
    """
    from langchain_classic.agents import (
        create_json_chat_agent,
        create_react_agent,
        create_structured_chat_agent,
        create_xml_agent,
    )

    system = ("system", "{tools} {tool_names}")
    react = PromptTemplate.from_template("{tools} {tool_names} {input}\n{agent_scratchpad}")
    chat = ChatPromptTemplate.from_messages([system, ("human", "{input}\n{agent_scratchpad}")])
    json_chat = ChatPromptTemplate.from_messages([system, *PROMPT.messages])
    xml = PromptTemplate.from_template("{tools} {input} {agent_scratchpad}")
    act = '```json\n{{"action": "{}", "action_input": {}}}\n```'
    blobs = [act.format("length", '{"word": "abc"}'), act.format("Final Answer", '"three"')]
    asked = "Thought: count\nAction: length\nAction Input: abc\nObservation: 99\nFinal Answer: no"
    tags = "<tool>length</tool><tool_input>abc</tool_input><observation>99"
    for make, prompt, script in (
        (create_react_agent, react, [asked, "Thought: done\nFinal Answer: three"]),
        (create_structured_chat_agent, chat, [f"Action:\n{blob}" for blob in blobs]),
        (create_json_chat_agent, json_chat, blobs),
        (create_xml_agent, xml, [tags, "<final_answer>three</final_answer>"]),
    ):
        with Play(script) as play:
            stop = {"stop_sequence": ["<observation>"]} if make is create_xml_agent else {}
            same(executor(make, [length], prompt=prompt, **stop)(play.svc()), "three")
            assert "3" in play.asked[1], play.asked
            assert "99" not in play.asked[1], play.asked


@program("retrieval chains", "langchain-classic")
def retrieval():
    """ConversationalRetrievalChain, RetrievalQA, create_retrieval_chain with a history-aware
    retriever, summary memory.
    """
    from langchain_classic.chains import (
        ConversationalRetrievalChain,
        ConversationChain,
        RetrievalQA,
        create_history_aware_retriever,
        create_retrieval_chain,
    )
    from langchain_classic.chains.combine_documents import create_stuff_documents_chain
    from langchain_classic.memory import ConversationSummaryMemory

    found = store(*TEXTS).as_retriever()
    talk = {"question": "x", "chat_history": [("hi", "hello")]}
    talking = lambda m: ConversationalRetrievalChain.from_llm(m, found)
    on_both(["What is blue?", "The sea."], lambda m: talking(m).invoke(talk)["answer"])
    asking = lambda m: RetrievalQA.from_chain_type(m, retriever=found)
    on_both(["The sea."], lambda m: asking(m).invoke("x")["result"])

    def chain(model):
        ask = ChatPromptTemplate.from_messages(["{chat_history} {input}"])
        answer = ChatPromptTemplate.from_template("{context}\n{input}")
        retriever = create_history_aware_retriever(model, found, ask)
        made = create_retrieval_chain(retriever, create_stuff_documents_chain(model, answer))
        return made.invoke({"input": "x", "chat_history": [("human", "hi")]})["answer"]

    _, play = on_both(["What is blue?", "The sea."], chain)
    assert "The sea is blue." in play.asked[1]

    def remember(model):
        memory = ConversationSummaryMemory(llm=model)
        ConversationChain(llm=model, memory=memory).invoke("x")
        return memory.buffer

    on_both(["hi", "They said hi."], remember)


@program("document chains", "langchain-classic")
def documents():
    """Summaries (stuff, map-reduce, refine), MultiQuery, extractor, filter, listwise reranking."""
    from langchain_classic.chains.summarize import load_summarize_chain
    from langchain_classic.retrievers import ContextualCompressionRetriever, MultiQueryRetriever
    from langchain_classic.retrievers.document_compressors import (
        LLMChainExtractor,
        LLMChainFilter,
        LLMListwiseRerank,
    )

    documents, found = [Document(text) for text in TEXTS], store(*TEXTS).as_retriever()
    for kind in ("stuff", "map_reduce", "refine"):
        with Play(lambda _: "short") as play:  # ChatOpenAI counts tokens with what it downloads
            chain = load_summarize_chain(play.svc(), kind)
            same(chain.invoke({"input_documents": documents})["output_text"], "short")
    on_both(["a\nb\nc"], lambda m: len(MultiQueryRetriever.from_llm(found, m).invoke("x")))

    def compressed(compressor, model):
        made = ContextualCompressionRetriever(
            base_compressor=compressor.from_llm(model), base_retriever=found
        )
        return [d.page_content for d in made.invoke("sea?")]

    on_both(lambda _: "blue", lambda m: compressed(LLMChainExtractor, m))
    judge = lambda text: "YES" if "sea" in text else "NO"
    on_both(judge, lambda m: compressed(LLMChainFilter, m))
    with Play([json.dumps({"ranked_document_ids": [1, 0]})]) as play:
        same(len(compressed(LLMListwiseRerank, play.svc())), 2)


@program("OutputFixingParser and evaluators", "langchain-classic")
def evaluators():
    """A parser that asks the model to repair; the criteria, QA and pairwise evaluators."""
    from langchain_classic.evaluation import load_evaluator
    from langchain_classic.output_parsers import OutputFixingParser
    from langchain_core.output_parsers import JsonOutputParser

    fixing = lambda m: OutputFixingParser.from_llm(m, JsonOutputParser())
    on_both(['{"a": 1}'], lambda m: fixing(m).parse("no JSON here"))
    given = {"prediction": "a", "input": "x"}
    criteria = lambda m: load_evaluator("criteria", llm=m, criteria="conciseness")
    on_both(["It is short.\nY"], lambda m: criteria(m).evaluate_strings(**given)["score"])
    qa = lambda m: load_evaluator("qa", llm=m).evaluate_strings(**given, reference="a")
    on_both(["GRADE: CORRECT"], lambda m: qa(m)["value"])
    pairs = lambda m: load_evaluator("pairwise_string", llm=m).evaluate_string_pairs
    on_both(["A is better. [[A]]"], lambda m: pairs(m)(**given, prediction_b="b")["value"])
