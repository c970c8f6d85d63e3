"""The Python example of the README, run as it stands but for the port."""

import pathlib
import re
import subprocess
import sys

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def test_readme_example(url):
    examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert examples
    for example in examples:
        assert "http://127.0.0.1:8080" in example
        code = example.replace("http://127.0.0.1:8080", url)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.split()) > 5
