"""A running server for the tests that need one."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INFER = os.environ.get("INFER", str(ROOT / "bin" / "infer"))


@pytest.fixture(scope="session")
def url():
    """INFER_URL, or a server started here with the embedded model."""
    if "INFER_URL" in os.environ:
        yield os.environ["INFER_URL"].rstrip("/")
        return
    server = subprocess.Popen([INFER, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, f"the server did not become ready: {line!r}"
        yield found.group(0)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)
