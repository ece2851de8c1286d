"""What goes wrong, and what you see of it. The sandbox makes it go wrong on request."""

from langchain_svc import ChatSvc, SvcError, SvcRateLimitError, SvcStreamError
from langchain_svc.sandbox import Fault, Sandbox

with Sandbox() as sandbox, ChatSvc(**sandbox.v1) as model:
    # 1. Refused twice, answered at the third try: the caller sees an answer.
    sandbox.faults = [Fault(status=503, headers={"Retry-After": "0.1"}, times=2)]
    answer = model.invoke("What is 1 + 1?")
    print(f"{answer.text} after {answer.response_metadata['retries']} retries")

    # 2. The service asks to come back in an hour. Nobody wants to wait that long in a call, so
    #    the error comes at once and knows the time.
    sandbox.faults = [Fault(status=429, headers={"Retry-After": "3600"})]
    try:
        model.invoke("What is 1 + 2?")
    except SvcRateLimitError as error:
        print(f"{type(error).__name__}: {error}")
        print(f"retry_after: {error.retry_after:.0f} s")

    # 3. A stream that breaks is never passed off as a whole answer.
    sandbox.faults = [Fault(cut=True, after=4)]
    try:
        for chunk in model.stream("Tell me a joke about broken pipes."):
            print(chunk.text, end="|")
    except SvcStreamError as error:
        print(f"\n{type(error).__name__}: {error}")
        print(f"partial: {error.partial!r}")

    # 4. Everything else is a SvcError too, with a next step in its text.
    sandbox.faults = []
    try:
        model.invoke("What is 1 + 3?", model="svc-imaginary")
    except SvcError as error:
        print(f"{type(error).__name__}: {error}")
