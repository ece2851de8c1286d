"""Structured output: answers as objects, checked, and asked for again when they do not fit."""

from _service import service
from pydantic import BaseModel, Field

from langchain_svc import ChatSvc


class Meeting(BaseModel):
    """A meeting that a text speaks of."""

    topic: str = Field(description="what the meeting is about")
    city: str
    people: int = Field(description="how many people are expected", ge=1)


TEXT = "We expect 12 people in Lisbon for the meeting about 'caching'."

with service() as where, ChatSvc(model="svc-pro", **where) as model:
    print(repr(model.with_structured_output(Meeting).invoke(TEXT)))

    # With include_raw nothing is raised, and the message with its usage is kept.
    result = model.with_structured_output(Meeting, include_raw=True).invoke(TEXT)
    print(result["parsed"].city, result["raw"].usage_metadata["total_tokens"] > 0)

    # A dict schema gives partial objects while the answer is being written.
    schema = Meeting.model_json_schema()
    for partial in model.with_structured_output(schema).stream(TEXT):
        print(partial)
