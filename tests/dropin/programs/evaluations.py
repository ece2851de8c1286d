"""Programs that evaluate with a model as the judge."""

from __future__ import annotations

import json

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.output_parsers import StrOutputParser
from player import Play, on_both, same
from registry import program

EVALS = ("openevals==0.2.2", "agentevals==0.0.9")


@program("ragas", "ragas", "ragas==0.4.3", "langchain-community<0.4.2")
def ragas():
    """evaluate() with a criterion and with answer relevancy, which asks three times at once."""
    from ragas import EvaluationDataset, evaluate
    from ragas.metrics import AspectCritic, ResponseRelevancy

    rows = [{"user_input": "Blue?", "response": "The sea.", "retrieved_contexts": ["The sea."]}]
    relevant = json.dumps({"question": "Blue?", "noncommittal": 0})
    verdict = json.dumps({"reason": "short", "verdict": 1})

    def run(model):
        scores = evaluate(
            EvaluationDataset.from_list(rows),
            [
                AspectCritic(name="short", definition="Is it short?"),
                ResponseRelevancy(strictness=3),
            ],
            llm=model,
            embeddings=DeterministicFakeEmbedding(size=8),
            show_progress=False,
            raise_exceptions=True,
        ).scores[0]
        return scores["short"], round(scores["answer_relevancy"], 3)

    script = lambda text: relevant if "noncommittal" in text else verdict
    # ChatOpenAI asks once with n=3.
    same(on_both(script, run, as_many=False)[0], (1, 1.0))


@program("deepeval", "deepeval", "deepeval==4.3.1")
def deepeval():
    """The model in a DeepEvalBaseLLM judges by GEval; the callback follows a run of a graph."""
    from deepeval.integrations.langchain import CallbackHandler
    from deepeval.metrics import GEval
    from deepeval.models import DeepEvalBaseLLM
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    class Judge(DeepEvalBaseLLM):
        def __init__(self, chat):
            self.chat = chat
            super().__init__("judge")

        def load_model(self):
            return self.chat

        def generate(self, prompt, schema=None):
            if schema is None:
                return self.chat.invoke(prompt).text
            return self.chat.with_structured_output(schema).invoke(prompt)

        async def a_generate(self, prompt, schema=None):
            return self.generate(prompt, schema)

        def get_model_name(self):
            return "judge"

    def run(model):
        metric = GEval(
            name="short",
            evaluation_steps=["Is it short?"],
            evaluation_params=[SingleTurnParams.ACTUAL_OUTPUT],
            model=Judge(model),
            async_mode=False,
        )
        metric.measure(LLMTestCase(input="x", actual_output="y"), _show_indicator=False)
        return metric.score, metric.reason

    same(on_both([json.dumps({"score": 10, "reason": "short"})], run)[0], (1.0, "short"))
    with Play(["hi"]) as play:
        same(play.svc().invoke("x", {"callbacks": [CallbackHandler()]}).text, "hi")


@program("openevals", "openevals", *EVALS)
def openevals():
    """A judge with a verdict, and with a number; agentevals' judge of an agent's trajectory."""
    from agentevals.trajectory.llm import TRAJECTORY_ACCURACY_PROMPT, create_trajectory_llm_as_judge
    from openevals.llm import create_llm_as_judge
    from openevals.prompts import CORRECTNESS_PROMPT

    def judge(model, *, continuous):
        made = create_llm_as_judge(prompt=CORRECTNESS_PROMPT, judge=model, continuous=continuous)
        return made(inputs="x", outputs="y", reference_outputs="y")["score"]

    def trajectory(model):
        made = create_trajectory_llm_as_judge(prompt=TRAJECTORY_ACCURACY_PROMPT, judge=model)
        said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
        return made(outputs=said)["score"]

    for score in (True, 0.5):
        script = [json.dumps({"reasoning": "the same", "score": score})]
        same(on_both(script, lambda m: judge(m, continuous=score == 0.5))[0], score)
    same(on_both([json.dumps({"reasoning": "good", "score": True})], trajectory)[0], True)


@program("trulens", "trulens-apps-langchain", "trulens-apps-langchain==2.16.0")
def trulens():
    """A chain answers under the recorder."""
    from trulens.apps.langchain import TruChain
    from trulens.core import TruSession

    TruSession(database_url="sqlite:///:memory:")

    def run(model):
        chain = model | StrOutputParser()
        with TruChain(chain, app_name="a"):
            return chain.invoke("x")

    on_both(["hi"], run)
