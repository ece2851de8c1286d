"""Print an answer while it is being written, in ordinary and in asynchronous code."""

import asyncio

from _service import service

from langchain_svc import ChatSvc

QUESTION = "Tell me a joke about HTTP caches."


async def ask_two(model: ChatSvc) -> None:
    """Two streams at once, on one event loop."""

    async def collect(question: str) -> str:
        return "".join([chunk.text async for chunk in model.astream(question)])

    for answer in await asyncio.gather(
        collect("What is 6 * 7?"), collect("What is 6 + 7?")
    ):
        print(answer)


with service(pace=0.02) as where, ChatSvc(model="svc-turbo", **where) as model:
    whole = None
    for chunk in model.stream(QUESTION):
        print(chunk.text, end="", flush=True)
        whole = chunk if whole is None else whole + chunk
    # The sum of the chunks is the message that invoke() would have returned.
    print()
    print(whole.usage_metadata)

    asyncio.run(ask_two(model))
