"""A small OpenAI-compatible server in a process of its own: what it answers is in the question.

Prints its port. The last message decides: "fail STATUS", "broken", "hang", "flood", "cut",
"think", or an echo of what was asked.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.path == "/v1/models"
        refused = self.headers.get("authorization") == "Bearer wrong"
        models = {"data": [{"id": "llama-3"}, {"id": "llama3.2:latest"}]}
        status = 401 if refused else 200 if known else 404
        self.head(status, json.dumps(models).encode(), "application/json")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = body["messages"][-1]["content"]
        key = self.headers.get("authorization", "")
        echo = {"path": self.path, "key": key, **body}
        said = json.dumps(echo)
        if isinstance(asked, str) and asked.startswith("fail "):
            text = f"no such thing as {key} on http://gpu.internal"
            self.head(int(asked[5:]), text.encode(), "text/plain", retry="7")
        elif asked == "broken":
            self.head(200, b"{", "application/json")
        elif body["stream"]:
            self.stream(asked)
        else:
            message = {"role": "assistant", "content": said}
            if asked == "think":
                message = {"content": "Yes.", "reasoning_content": "Hmm."}
            choice = {"index": 0, "message": message, "finish_reason": "length"}
            usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
            answer = json.dumps({"choices": [choice], "usage": usage})
            self.head(200, answer.encode(), "application/json")

    def head(self, status, body, kind, retry=""):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("retry-after", retry)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, asked):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        deltas = [{"role": "assistant"}, {"content": "One "}, {"content": "two"}]
        if asked == "think":
            deltas = [{"reasoning": "Hm"}, {"reasoning": "m."}, {"content": "Yes."}]
        for delta in deltas:
            self.event({"choices": [{"delta": delta, "finish_reason": None}]})
        if asked in {"hang", "flood"}:
            deltas = [{"delta": {"content": "more " * 50}}] if asked == "flood" else []
            try:
                while True:
                    self.event({"choices": deltas})
                    time.sleep(0.05 if asked == "hang" else 0)
            except OSError:
                sys.stdout.write("the client left\n")
                sys.stdout.flush()
        elif asked == "cut":
            self.event({"error": {"message": "out of memory at http://gpu.internal"}})
        else:
            self.event({"choices": [{"delta": {}, "finish_reason": "length"}]})
            self.event({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}})
            self.wfile.write(b"data: [DONE]\n\n")

    def event(self, value):
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
