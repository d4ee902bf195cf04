"""The verb serve-extender, with requests as a scheduler sends them."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.cli.terminal import COMMAND, attentive, environment, fastsim_here
from tests.unit.decisions.test_kube_extender import THREE, pod


def test_a_scheduler_is_answered(tmp_path: Path) -> None:
    (tmp_path / "live.json").write_text(json.dumps({"kind": "List", "items": [*THREE, {"kind": "NodePool"}]}))
    words = [*COMMAND, "serve-extender", "--snapshot", str(tmp_path / "live.json"), "--listen", "127.0.0.1:0",
             "--policy", "0.9*fgd + 0.1*pwr", "--limit-mib", "1"]  # fmt: skip
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=attentive) as live:  # fmt: skip
        assert live.stdout is not None
        line = live.stdout.readline()
        assert "filter and prioritize by 0.9*fgd + 0.1*pwr, 3 nodes with 1 pods" in line
        connection = http.client.HTTPConnection("127.0.0.1", int(line.split(": ")[0].rpartition(":")[2]), timeout=280)
        body = json.dumps({"Pod": pod("p"), "NodeNames": ["n1", "n2", "n3"]})
        found = []
        for path in ("/filter", "/prioritize"):
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            found.append(json.loads(connection.getresponse().read()))
        connection.request("POST", "/filter", "x" * ((1 << 20) + 1))
        refused = connection.getresponse().status
        connection.close()
        live.send_signal(signal.SIGINT)
        out, err = live.communicate(timeout=280)
    assert refused == 413
    assert found[0]["NodeNames"] == ["n1", "n2"] and sorted(item["Score"] for item in found[1]) == [0, 0, 10]
    assert (live.returncode, out, err) == (0, "ended after 2 answers\n", "not honoured: objects of kind NodePool (1)\n")


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "live.json").write_text('{"kind": "List", "items": [')
    for words, found in (
        (["--snapshot", tmp_path / "live.json"], "expected JSON"),
        (["--snapshot", tmp_path / "none.json"], "none.json: found"),
        (["--snapshot", "http://127.0.0.1:9"], "a complete answer of a Kubernetes API server"),
        (["--snapshot", tmp_path, "--policy", "fdg"], "fgd"),
    ):
        command = fastsim_here("serve-extender", *words, cwd=tmp_path)
        assert command.code == 2 and found in command.line


def test_sigterm_ends_it_after_what_is_asked(tmp_path: Path) -> None:
    (tmp_path / "live.json").write_text(json.dumps({"kind": "List", "items": THREE}))
    words = [*COMMAND, "serve-extender", "--snapshot", str(tmp_path / "live.json"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as live:
        assert live.stdout is not None
        port = int(live.stdout.readline().split(": ")[0].rpartition(":")[2])
        body = json.dumps({"Pod": pod("p"), "NodeNames": ["n1", "n2", "n3"]}).encode()
        head = f"POST /filter HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=280) as connection:
            connection.sendall(head.encode())
            assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"  # so that the request is let in
            live.send_signal(signal.SIGTERM)
            time.sleep(0.3)  # the service notices meanwhile; if it is later, the outcome is the same
            connection.sendall(body)
            with http.client.HTTPResponse(connection) as answer:
                answer.begin()
                found = json.loads(answer.read())
        out, err = live.communicate(timeout=280)
    assert found["NodeNames"] == ["n1", "n2"]
    assert (live.returncode, out, err) == (143, "", "fastsim: ended by SIGTERM after 1 answers\n")
