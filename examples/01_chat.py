"""One question, one answer, and what comes with it."""

from _service import service

from langchain_svc import ChatSvc

with service() as where, ChatSvc(model="svc-pro", temperature=0, **where) as model:
    answer = model.invoke("What is 17 * 23?")
    print(answer.text)

    # Every answer carries its tokens, and what the service said about itself.
    print(answer.usage_metadata)
    for name in ("model_name", "finish_reason", "usage_source"):
        print(f"{name}: {answer.response_metadata[name]}")

    # A conversation is a list of messages. Any setting of a call can be given with it.
    answer = model.invoke(
        [
            ("system", "You answer briefly."),
            ("human", "What is 17 * 23?"),
            ("ai", answer.text),
            ("human", "And what is 391 / 17?"),
        ],
        max_tokens=100,
    )
    print(answer.text)
