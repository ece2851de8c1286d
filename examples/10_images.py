"""Images: an agent that passes handles, a picture in a message, files for people."""

import sys
import tempfile
from pathlib import Path

from _service import service
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from PIL import Image

from langchain_svc import ChatSvc, SvcToolkit

STEPS = "then describe the image, then translate the description, target: es"
REQUESTS = (
    f"Generate an image of a lighthouse at dusk, {STEPS}.",
    "Generate an image of three yellow stars over a purple sea.",
    "Generate an image of a red circle.",
)

with (
    service(general=True) as where,
    SvcToolkit(**where) as toolkit,
    # With the toolkit's store, the model and the tools know an image by the same handle.
    ChatSvc(
        model="svc-pro", image_inputs="describe", images=toolkit.images, **where
    ) as model,
):
    agent = create_agent(model, toolkit.get_tools())
    for request in REQUESTS:
        for message in agent.invoke({"messages": [("user", request)]})["messages"]:
            message.pretty_print()

    # An image in a message is described once, and the chat endpoint gets the description.
    mine = toolkit.images.add(Image.radial_gradient("L"), label="a picture of our own")
    block = {
        "type": "image",
        "base64": toolkit.images.get(mine).base64,
        "mime_type": "image/png",
    }
    answer = model.invoke([HumanMessage(["What is this? ", block])])
    print(f"\n{mine}: {answer.content}")

    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir())
    for image in toolkit.images:  # a notebook displays each
        print(toolkit.images.save(image.handle, folder / f"{image.handle}.png").name)
