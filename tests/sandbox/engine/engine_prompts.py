"""Prompts as a client might fold them, in wordings that no client of ours uses."""

import json
import re

from langchain_svc.sandbox.engine import answer


def tool(name, description="", properties=None, required=None):
    properties = properties or {}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(properties) if required is None else required,
            },
        },
    }


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
WEATHER = tool("get_weather", "Get weather at a location.", {"location": STRING})
ADD = tool("add", "Add two numbers.", {"a": NUMBER, "b": NUMBER})
MULTIPLY = tool("multiply", "Multiply two numbers.", {"a": NUMBER, "b": NUMBER})
MAGIC = tool("magic_function", "Apply a magic function.", {"input": INTEGER})
DRAW = tool(
    "make_picture",
    "Generate an image from a text description; returns its handle.",
    {"prompt": STRING, "size": {"type": "string", "enum": ["1024x1024", "1792x1024"]}},
    ["prompt"],
)
LOOK = tool(
    "look_at_picture",
    "Analyze an image by its handle.",
    {
        "image": {"type": "string", "description": "A handle such as img_1"},
        "task": {"type": "string", "enum": ["detect", "ocr", "moderate", "describe"]},
    },
)
TRANSLATE = tool(
    "translate_text",
    "Translate a text into another language.",
    {"text": STRING, "target": {"type": "string", "description": "Language code, e.g. fr"}},
)

TAGS = """{system}

## What you can call

<tools>
{tools}
</tools>

A call is written like this, one block each:
<tool_call>
{{"name": "<name>", "arguments": {{"<key>": "<value>"}}}}
</tool_call>
Results come back in <tool_response> blocks. {extra}

{question}"""

FENCE = """{system}

These are the functions you may call:
{tools}

Write every call as a code block of its own:
```json
{{"name": "<name>", "arguments": {{}}}}
```
{extra}

{question}"""

FORMATS = {"tags": TAGS, "fence": FENCE}


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def system(text):
    return {"role": "system", "content": text}


def fold(question, *tools, form=TAGS, extra="", persona="You are a helpful assistant."):
    lines = "\n".join(json.dumps(one, ensure_ascii=False) for one in tools)
    return user(form.format(system=persona, tools=lines, extra=extra, question=question))


def called(name, **arguments):
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return assistant(f"<tool_call>\n{body}\n</tool_call>")


def result(text, **attributes):
    told = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return user(f"<tool_response{told}>\n{text}\n</tool_response>")


def text_of(*messages, **options):
    return answer(messages, model="svc-turbo", **options).text


_BLOCK = re.compile(r"<tool_call>\n(.*)\n</tool_call>|```json\n(.*)\n```")


def calls_of(*messages):
    """Return the calls of an answer; nothing but calls may be in it."""
    text = text_of(*messages)
    bodies = [json.loads(tagged or fenced) for tagged, fenced in _BLOCK.findall(text)]
    assert not bodies or not _BLOCK.sub("", text).strip()
    flat = [one for body in bodies for one in (body if isinstance(body, list) else [body])]
    return [(one["name"], one["arguments"]) for one in flat]
