"""langchain-classic: its agents and chains."""

from __future__ import annotations

import json

from common import ONE_TWO, add
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from player import Play, calls, on_both, same
from registry import program

from langchain_svc import SvcRequestError

PROMPT = ChatPromptTemplate.from_messages(
    [("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
)
DOCS = [Document("The sea is blue.", metadata={"n": 1}), Document("Grass is green.")]
BROKEN = "<tool_call>\nadd one and two\n</tool_call>"


@tool
def length(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


def store():
    """A store with two documents."""
    return InMemoryVectorStore.from_documents(DOCS, DeterministicFakeEmbedding(size=8))


def executor(make, tools=(add,), **words):
    from langchain_classic.agents import AgentExecutor

    def run(model):
        agent = make(model, list(tools), **words)
        return AgentExecutor(agent=agent, tools=list(tools)).invoke({"input": "x"})["output"]

    return run


@program("AgentExecutor: tool-calling and openai-tools agents", "langchain-classic")
def tool_agents():
    """A good call; a wrong name and an unreadable call, from which the run recovers."""
    from langchain_classic.agents import create_openai_tools_agent, create_tool_calling_agent

    for make in (create_tool_calling_agent, create_openai_tools_agent):
        run = executor(make, prompt=PROMPT)
        same(on_both([calls(ONE_TWO, ("add", {"a": 3, "b": 4})), "3 and 7"], run)[0], "3 and 7")
        same(on_both([calls(("ad", {"a": 1, "b": 2})), "recovered"], run)[0], "recovered")
        with Play([BROKEN, calls(ONE_TWO), "3"]) as play:
            same(run(play.svc()), "3")


@program("AgentExecutor: wrong arguments", "langchain-classic")
def wrong_arguments():
    """A missing argument: the executor raises the tool's ValidationError, as with ChatOpenAI; `handle_validation_error=True` goes on."""
    from langchain_classic.agents import create_tool_calling_agent
    from pydantic import ValidationError

    script = [calls(("add", {"a": 1})), "recovered"]
    for make in (Play.svc, Play.openai):
        with Play(script) as play:
            try:
                executor(create_tool_calling_agent, prompt=PROMPT)(make(play))
            except ValidationError:
                pass
            else:
                raise AssertionError("the tool ran")
    told = add.model_copy(update={"handle_validation_error": True})
    came, play = on_both(script, executor(create_tool_calling_agent, (told,), prompt=PROMPT))
    same((came, len(play.requests)), ("recovered", 2))


@program("AgentExecutor: ReAct, structured chat, JSON and XML agents", "langchain-classic")
def text_agents():
    """Agents of plain text, which rely on `stop`. (The XML agent's own stop sequence cuts the tag that its parser wants.)"""
    from langchain_classic.agents import (
        AgentExecutor,
        create_json_chat_agent,
        create_react_agent,
        create_structured_chat_agent,
        create_xml_agent,
    )

    react = PromptTemplate.from_template("{tools} {tool_names} {input}\n{agent_scratchpad}")
    act = '{{"action": "{}", "action_input": {}}}'
    blob = [act.format("length", '{"word": "abc"}'), act.format("Final Answer", '"three"')]
    chat = ChatPromptTemplate.from_messages(
        [("system", "{tools} {tool_names}"), ("human", "{input}\n{agent_scratchpad}")]
    )
    json_chat = ChatPromptTemplate.from_messages(
        [
            ("system", "{tools} {tool_names}"),
            ("human", "{input}"),
            ("placeholder", "{agent_scratchpad}"),
        ]
    )
    xml = PromptTemplate.from_template("{tools} {input} {agent_scratchpad}")
    for make, prompt, script in (
        (
            create_react_agent,
            react,
            [
                "Thought: count\nAction: length\nAction Input: abc\nObservation: 99\nFinal Answer: no",
                "Thought: done\nFinal Answer: three",
            ],
        ),
        (create_structured_chat_agent, chat, [f"Action:\n```json\n{b}\n```" for b in blob]),
        (create_json_chat_agent, json_chat, [f"```json\n{b}\n```" for b in blob]),
        (
            create_xml_agent,
            xml,
            [
                "<tool>length</tool><tool_input>abc</tool_input><observation>99",
                "<final_answer>three</final_answer>",
            ],
        ),
    ):
        with Play(script) as play:
            stop = {"stop_sequence": ["<observation>"]} if make is create_xml_agent else {}
            agent = make(play.svc(), [length], prompt, **stop)
            run = AgentExecutor(agent=agent, tools=[length], handle_parsing_errors=False)
            same(run.invoke({"input": "x"})["output"], "three")
            assert "3" in play.asked[1], play.asked
            assert "99" not in play.asked[1], play.asked


@program("create_openai_functions_agent", "langchain-classic")
def functions_agent():
    """The legacy `functions` are rejected, and the error names the agent to use."""
    from langchain_classic.agents import create_openai_functions_agent

    with Play([]) as play:
        try:
            executor(create_openai_functions_agent, prompt=PROMPT)(play.svc())
        except (SvcRequestError, TypeError) as error:
            assert "bind_tools" in str(error), error
            assert not play.requests
        else:
            raise AssertionError("it was taken")


@program("retrieval chains", "langchain-classic")
def retrieval():
    """ConversationalRetrievalChain, RetrievalQA, create_retrieval_chain with a history-aware retriever, summary memory."""
    from langchain_classic.chains import (
        ConversationalRetrievalChain,
        ConversationChain,
        RetrievalQA,
        create_history_aware_retriever,
        create_retrieval_chain,
    )
    from langchain_classic.chains.combine_documents import create_stuff_documents_chain
    from langchain_classic.memory import ConversationSummaryMemory

    on_both(
        ["What is blue?", "The sea."],
        lambda m: ConversationalRetrievalChain.from_llm(m, store().as_retriever()).invoke(
            {"question": "x", "chat_history": [("hi", "hello")]}
        )["answer"],
    )
    on_both(
        ["The sea."],
        lambda m: RetrievalQA.from_chain_type(m, retriever=store().as_retriever()).invoke("x")[
            "result"
        ],
    )

    def chain(model):
        ask = ChatPromptTemplate.from_messages(
            [("placeholder", "{chat_history}"), ("human", "{input}")]
        )
        answer = ChatPromptTemplate.from_template("{context}\n{input}")
        retriever = create_history_aware_retriever(model, store().as_retriever(), ask)
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

    for kind in ("stuff", "map_reduce", "refine"):
        with Play(lambda _: "short") as play:  # ChatOpenAI counts tokens with what it downloads
            chain = load_summarize_chain(play.svc(), kind)
            same(chain.invoke({"input_documents": DOCS})["output_text"], "short")
    on_both(
        ["a\nb\nc"],
        lambda m: len(MultiQueryRetriever.from_llm(store().as_retriever(), m).invoke("x")),
    )
    for compressor, script in (
        (LLMChainExtractor, lambda _: "blue"),
        (LLMChainFilter, lambda text: "YES" if "sea" in text else "NO"),
        (LLMListwiseRerank, lambda _: RANKING),
    ):

        def run(model, compressor=compressor):
            made = ContextualCompressionRetriever(
                base_compressor=compressor.from_llm(model), base_retriever=store().as_retriever()
            )
            return [d.page_content for d in made.invoke("sea?")]

        if compressor is LLMListwiseRerank:
            with Play(script) as play:
                same(len(run(play.svc())), 2)
        else:
            on_both(script, run)


RANKING = json.dumps({"ranked_document_ids": [1, 0]})


@program("OutputFixingParser and evaluators", "langchain-classic")
def evaluators():
    """A parser that asks the model to repair; the criteria, QA and pairwise evaluators."""
    from langchain_classic.evaluation import load_evaluator
    from langchain_classic.output_parsers import OutputFixingParser
    from langchain_core.output_parsers import JsonOutputParser

    on_both(
        ['{"a": 1}'],
        lambda m: OutputFixingParser.from_llm(m, JsonOutputParser()).parse("no JSON here"),
    )
    criteria = lambda m: load_evaluator("criteria", llm=m, criteria="conciseness")  # noqa: E731
    on_both(
        ["It is short.\nY"],
        lambda m: criteria(m).evaluate_strings(prediction="a", input="x")["score"],
    )
    on_both(
        ["GRADE: CORRECT"],
        lambda m: load_evaluator("qa", llm=m).evaluate_strings(
            prediction="a", input="x", reference="a"
        )["value"],
    )
    on_both(
        ["A is better. [[A]]"],
        lambda m: load_evaluator("pairwise_string", llm=m).evaluate_string_pairs(
            prediction="a", prediction_b="b", input="x"
        )["value"],
    )
