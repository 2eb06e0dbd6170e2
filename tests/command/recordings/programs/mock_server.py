"""Serve HTTP on 127.0.0.1 with a known delay: `python mock_server.py PORT DELAY_MS [FAIL_EVERY]`.

`GET` answers after the delay; each FAIL_EVERY-th request gets status 500. `POST /v1/completions`
and `/v1/chat/completions` answer as a model server does: eight tokens, one per DELAY_MS, as
server-sent events when the request asks for a stream.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys

TOKENS = 8
MODEL = {"id": "mock", "object": "model", "max_model_len": 4096}


async def main(port: int, delay_s: float, fail_every: int) -> None:
    """Serve until the process is ended."""
    numbers = itertools.count(1)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await answer(reader, writer, delay_s, fail_every, numbers):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1000)
    await server.serve_forever()


async def answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    delay_s: float,
    fail_every: int,
    numbers: itertools.count[int],
) -> bool:
    """Answer one request; False when the client wants the connection closed."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    request, *lines = head.strip().split("\r\n")
    fields = {key.lower(): value for key, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    method, path, protocol = request.split()
    asked = json.loads(body) if body else {}
    failed = fail_every > 0 and method + path != "GET/v1/models" and next(numbers) % fail_every == 0
    if failed:
        await asyncio.sleep(delay_s)
        reply(writer, 500, json.dumps({"error": "this request fails by design"}))
    elif asked.get("stream"):
        await stream(writer, asked, delay_s, chat="chat" in path)
    elif method == "POST":
        await asyncio.sleep(delay_s * TOKENS)
        reply(writer, 200, json.dumps(whole(asked, chat="chat" in path)))
    elif path == "/v1/models":
        reply(writer, 200, json.dumps({"object": "list", "data": [MODEL]}))
    else:
        await asyncio.sleep(delay_s)
        reply(writer, 200, "{}")
    await writer.drain()
    keep = fields.get("connection", "").lower()
    return keep != "close" and (protocol != "HTTP/1.0" or keep == "keep-alive")


def reply(writer: asyncio.StreamWriter, status: int, body: str) -> None:
    """Write a whole response."""
    reason = "OK" if status == 200 else "Internal Server Error"
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Length: {len(body)}\r\n"
    head += "Content-Type: application/json\r\nConnection: keep-alive\r\n\r\n"
    writer.write((head + body).encode())


async def stream(
    writer: asyncio.StreamWriter, asked: dict[str, object], delay_s: float, *, chat: bool
) -> None:
    """Write the tokens as server-sent events, one per delay."""
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    writer.write(head.encode())
    for number in range(TOKENS):
        await asyncio.sleep(delay_s)
        choice: dict[str, object] = {"index": 0, "finish_reason": None}
        if number == TOKENS - 1:
            choice["finish_reason"] = "length"
        choice.update({"delta": {"role": "assistant", "content": " a"}} if chat else {"text": " a"})
        event(writer, {**named(asked, chat=chat), "choices": [choice]})
    if asked.get("stream_options"):
        event(writer, {**named(asked, chat=chat), "choices": [], "usage": usage()})
    writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


def event(writer: asyncio.StreamWriter, content: dict[str, object]) -> None:
    """Write one event as a chunk."""
    line = f"data: {json.dumps(content)}\n\n".encode()
    writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")


def whole(asked: dict[str, object], *, chat: bool) -> dict[str, object]:
    """Build the response without a stream."""
    choice: dict[str, object] = {"index": 0, "finish_reason": "length"}
    text = " a" * TOKENS
    choice.update({"message": {"role": "assistant", "content": text}} if chat else {"text": text})
    return {**named(asked, chat=chat), "choices": [choice], "usage": usage()}


def named(asked: dict[str, object], *, chat: bool) -> dict[str, object]:
    """Build the fields that each object of a response has."""
    kind = "chat.completion.chunk" if chat else "text_completion"
    return {"id": "1", "object": kind, "created": 0, "model": asked.get("model", "mock")}


def usage() -> dict[str, int]:
    """Build the count of tokens."""
    return {"prompt_tokens": 8, "completion_tokens": TOKENS, "total_tokens": 8 + TOKENS}


if __name__ == "__main__":
    fail = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]) / 1000, fail))
