"""Lines over a websocket, from a server that sends them in any pieces; no cluster is needed."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from queue import Queue
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websocket import ABNF, WebSocket, WebSocketException

from fixtures.kubernetes.agent import Channel
from fixtures.kubernetes.watch import LineSplitter
from fixtures.terms import Refused
from tests.waiting import PATIENCE_S

RFC_6455 = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=["Cs"])),
        max_size=6,
    ),
    st.data(),
)
def test_lines_come_whole_however_they_are_cut(texts: list[str], data: st.DataObject) -> None:
    """Between characters and within them, several in one piece, one in many, empty ones too."""
    whole = "".join(f"{text}\n" for text in texts).encode() + b"the rest"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    lines = LineSplitter()
    pieces = [whole[one:other] for one, other in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert [line.decode() for piece in pieces for line in lines.take(piece)] == texts


class Server:
    """The API server's end of one websocket, by hand: scripted output, recorded input."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listener.getsockname()[1]}/attach"
        self.heard: Queue[bytes] = Queue()
        self.connected = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError, WebSocketException):
            self.client, _ = self._listener.accept()
            request = b""
            while b"\r\n\r\n" not in request:
                request += self.client.recv(4096)
            key = next(
                line.split(": ")[1]
                for line in request.decode().split("\r\n")
                if line.lower().startswith("sec-websocket-key")
            )
            accept = base64.b64encode(
                hashlib.sha1(f"{key}{RFC_6455}".encode(), usedforsecurity=False).digest()
            ).decode()
            head = (
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
                f"Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            )
            self.client.sendall(head.encode())
            self.connected.set()
            reader = WebSocket(skip_utf8_validation=True)
            reader.sock, reader.connected = self.client, True
            while True:
                opcode, frame = reader.recv_data_frame(control_frame=True)
                if opcode == ABNF.OPCODE_CLOSE:
                    return
                self.heard.put(bytes(frame.data))

    def send(self, data: bytes, opcode: int = ABNF.OPCODE_BINARY, fin: int = 1) -> None:
        self.connected.wait(PATIENCE_S)
        frame = ABNF(fin, 0, 0, 0, opcode, 0, data)
        self.client.sendall(frame.format())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.client.close()
        self._listener.close()
        self._thread.join(PATIENCE_S)


class Heard:
    def __init__(self, server: Server) -> None:
        self.lines: Queue[bytes] = Queue()
        self.ends: Queue[str] = Queue()

        def connect() -> WebSocket:
            made = WebSocket(skip_utf8_validation=True)
            made.connect(server.url)  # type: ignore[no-untyped-call]  # typed in part
            return made

        self.channel = Channel(connect, self.lines.put, self.ends.put, PATIENCE_S)

    def line(self) -> bytes:
        return self.lines.get(timeout=PATIENCE_S)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


@pytest.fixture
def heard(server: Server) -> Iterator[Heard]:
    made = Heard(server)
    yield made
    made.channel.close()


def test_a_long_line_comes_whole_in_many_frames(server: Server, heard: Heard) -> None:
    """Two megabytes in frames that split characters, with a log line and a ping in between."""
    text = json.dumps({"id": 1, "ok": "ä€𝄞" * 300_000}, ensure_ascii=False).encode()
    assert len(text) > 2_000_000
    for number, start in enumerate(range(0, len(text), 7001)):
        server.send(b"\x01" + text[start : start + 7001])
        if number == 3:
            server.send(b"\x02something on stderr\n")
            server.send(b"are you there", ABNF.OPCODE_PING)
    server.send(b"\x01\n\x01", fin=1)
    assert heard.line() == text
    assert server.heard.get(timeout=PATIENCE_S) == b"are you there", "the pong"


def test_what_is_sent_from_many_threads_arrives_line_by_line(server: Server, heard: Heard) -> None:
    """Long ones in pieces, each whole."""
    sent = [f"{number}:".encode() + b"x" * (number * 9000) for number in range(16)]
    threads = [threading.Thread(target=heard.channel.send, args=(line,)) for line in sent]
    for thread in threads:
        thread.start()
    received = b""
    while received.count(b"\n") < len(sent):
        frame = server.heard.get(timeout=PATIENCE_S)
        assert frame[0] == 0, "stdin"
        received += frame[1:]
    for thread in threads:
        thread.join()
    assert sorted(received.split(b"\n")[:-1]) == sorted(sent)


@pytest.mark.parametrize(
    ("data", "opcode", "says"),
    [
        (b'\x03{"status":"Success","metadata":{}}', ABNF.OPCODE_BINARY, "the stream ended"),
        (
            b'\x03{"status":"Failure","message":"container not found"}',
            ABNF.OPCODE_BINARY,
            "the stream ended (container not found)",
        ),
        (b"\x03?", ABNF.OPCODE_BINARY, "the stream ended (b'?')"),
        (b"\x03[]", ABNF.OPCODE_BINARY, "the stream ended"),
        (b"", ABNF.OPCODE_CLOSE, "the other end closed the connection"),
    ],
)
def test_the_end_is_told_once_with_its_reason(
    server: Server, heard: Heard, data: bytes, opcode: int, says: str
) -> None:
    server.send(b"\x01last\n")
    server.send(data, opcode)
    assert (heard.line(), heard.ends.get(timeout=PATIENCE_S)) == (b"last", says)
    heard.channel.send(b"into the void")
    heard.channel.close()
    assert heard.ends.empty()


def test_who_cannot_connect_is_told_why() -> None:
    def refused() -> Any:
        raise Refused("attaching was refused")

    with pytest.raises(Refused, match="attaching was refused"):
        Channel(refused, print, print, PATIENCE_S)
    forever = threading.Event()
    with pytest.raises(Refused, match=r"got no answer within 0\.1 s"):
        Channel(forever.wait, print, print, 0.1)
    forever.set()
