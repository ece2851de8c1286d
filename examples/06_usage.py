"""What calls cost: tokens, money, retries and errors, for each model."""

import json

from _service import service

from langchain_svc import ChatSvc, SvcUsageCallbackHandler

with service(pace=0.01) as where, ChatSvc(model="svc-pro", **where) as model:
    # As a context manager it sees every call inside, also those in chains, graphs and threads.
    with SvcUsageCallbackHandler(prices=model.list_models()) as usage:
        model.invoke("What is 2 + 2?")
        model.batch([f"What is {n} + {n}?" for n in range(5)])
        for _ in model.stream("Tell me a joke about proxies."):
            pass
        model.invoke("What is 3 + 3?", model="svc-turbo")

    counted = usage.models["svc-pro"]
    print(
        f"svc-pro: {counted.calls} calls, {counted.total_tokens} tokens, {counted.cost}"
    )
    print(json.dumps(usage.to_dict()["svc-turbo"], indent=2))

try:
    from rich import print as show
except ImportError:
    print('The table needs rich: pip install "langchain-svc[cli]"')
else:
    show(usage.table())
