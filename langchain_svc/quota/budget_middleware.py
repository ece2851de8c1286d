"""`SvcBudgetMiddleware`: what an agent does when its budget is used up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage

from .._base.middleware import Middleware, require_langchain
from .._base.safe_errors import safe_repr
from ..errors import SvcBudgetError
from .limiter import SvcBudget

AT_LIMIT = ("end", "raise", "ask")
_BOUNDS = ("max_requests", "max_tokens", "max_cost")


class SvcBudgetMiddleware(Middleware):
    """Keeps an agent within a budget, and lets it end with the work that is done.

        agent = create_agent(
            model, tools, middleware=[SvcBudgetMiddleware(SvcBudget(max_tokens=50_000))]
        )

    The budget counts the agent's calls of the model and those of its tools that call the service.
    The call that would exceed it is not sent. Then, by `at_limit`:

    - "end": the agent ends. Its last message says so, has `finish_reason="budget"` in its
      `response_metadata`, and stands behind all messages until then.
    - "raise": the call raises `SvcBudgetError`, as without this class.
    - "ask": the agent is interrupted for a person, which needs a checkpointer. The interrupt's
      value is a dict with `message`, `used`, `left` and `answers`. Go on with
      `Command(resume={"max_tokens": 100_000})`, which raises that bound, or with
      `Command(resume="end")`. After any other answer the question comes again, with a `problem`.

    Args:
        budget: The budget. If the model has the same one as `budget=`, a call counts once.
        at_limit: What happens at its end.

    Raises:
        ImportError: `langchain` is not installed (`pip install "langchain-svc[agents]"`).
        ValueError: An argument is not one of these; the error lists them.
    """

    def __init__(
        self, budget: SvcBudget, *, at_limit: Literal["end", "raise", "ask"] = "end"
    ) -> None:
        require_langchain(type(self).__name__)
        if not isinstance(budget, SvcBudget):
            raise ValueError(  # noqa: TRY004  # as all wrong arguments
                f"budget must be a SvcBudget such as SvcBudget(max_tokens=50_000), "
                f"not {safe_repr(budget)}"
            )
        if at_limit not in AT_LIMIT:
            raise ValueError(
                "at_limit must be 'end' (a message says so), 'raise' (SvcBudgetError) or 'ask' "
                f"(an interrupt for a person), not {safe_repr(at_limit)}"
            )
        super().__init__()
        self.budget = budget
        self.at_limit = at_limit

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model within the budget."""
        while True:
            try:
                with self.budget:
                    return handler(request)
            except SvcBudgetError as error:
                message = self._at_limit(error)
            if message is not None:
                return message

    async def awrap_model_call(
        self, request: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """The async version of `wrap_model_call`."""
        while True:
            try:
                with self.budget:
                    return await handler(request)
            except SvcBudgetError as error:
                message = self._at_limit(error)
            if message is not None:
                return message

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call a tool within the budget. The model reads the tool's report of its end."""
        with self.budget:
            return handler(request)

    async def awrap_tool_call(
        self, request: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """The async version of `wrap_tool_call`."""
        with self.budget:
            return await handler(request)

    def _at_limit(self, error: SvcBudgetError) -> AIMessage | None:
        """The agent's last message; None where the bound was raised, so that the call is tried."""
        # Another budget around the agent, or a price that is missing, is not ours to decide.
        if self.at_limit == "raise" or not self.budget.raised(error):
            raise error
        if self.at_limit == "end":
            return _last_message(error)
        return self._ask(error)

    def _ask(self, error: SvcBudgetError) -> AIMessage | None:
        """Interrupt the agent, and do what the person answers."""
        # A graph that goes on runs this node from its start, where the call fails as before; then
        # `interrupt` returns the answers one after the other.
        from langgraph.types import interrupt  # noqa: PLC0415  # an extra

        question = _question(error)
        while True:
            answer = interrupt(question)
            if answer == "end":
                return _last_message(error)
            try:
                self._raise_to(answer)
            except ValueError as problem:
                # The graph keeps this answer and replays it before every later one, so an error
                # here would come back for ever.
                question = {**question, "problem": str(problem)}
            else:
                return None

    def _raise_to(self, answer: object) -> None:
        """Raise the bounds as a person has answered; ValueError for another answer."""
        if isinstance(answer, Mapping) and answer and {*answer} <= {*_BOUNDS}:
            self.budget.raise_to(**answer)
            return
        raise ValueError(
            "The answer to a budget's question must be 'end', or larger bounds such as "
            f"{{'max_requests': 50}} ({', '.join(_BOUNDS)}), not {safe_repr(answer)}"
        )


def _last_message(error: SvcBudgetError) -> AIMessage:
    return AIMessage(
        f"I stopped here, because the budget of this run is used up. {error.message}",
        response_metadata={"finish_reason": "budget"},
    )


def _question(error: SvcBudgetError) -> dict[str, Any]:
    """The question to a person, of plain values, which every checkpointer can keep."""
    return {
        "message": error.message,
        "used": vars(error.used),
        "left": vars(error.left),
        "answers": ["end", *({name: "a larger number"} for name in _BOUNDS)],
    }
