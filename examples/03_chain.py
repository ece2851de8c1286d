"""A chain: a prompt, the model, and a parser that turns the answer into an object."""

from _service import service
from langchain_core.output_parsers import PydanticOutputParser
from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel, Field

from langchain_svc import ChatSvc


class Meeting(BaseModel):
    """What the chain is to find in a text."""

    topic: str = Field(description="what the meeting is about")
    city: str
    people: int = Field(description="how many people are expected")


parser = PydanticOutputParser(pydantic_object=Meeting)
prompt = ChatPromptTemplate.from_messages(
    [("system", "{form}"), ("human", "{text}")]
).partial(form=parser.get_format_instructions())

with service() as where, ChatSvc(model="svc-pro", **where) as model:
    chain = prompt | model | parser
    text = "We expect 12 people in Lisbon for the meeting about 'caching'."
    meeting = chain.invoke({"text": text})
    print(repr(meeting))
