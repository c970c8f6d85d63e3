"""`infer template` against Jinja2 itself, on random conversations: the same text, or the same error.

More templates can be tried with INFER_TEMPLATES=FOLDER, another run with INFER_SEED=N.
"""

import datetime
import json
import os
import pathlib
import random
import subprocess
import tarfile

import jinja2
import jinja2.ext
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

ROOT = pathlib.Path(__file__).resolve().parents[2]
INFER = os.environ.get("INFER", str(ROOT / "bin" / "infer"))
CASES = ROOT / "runtime/tokenizer/chattemplate/testdata/chat-templates.tar.gz"
SEED = int(os.environ.get("INFER_SEED", "1"))
CONTEXTS = 40


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def reference():
    """The environment that transformers builds."""

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: datetime.datetime.now().strftime(f)
    return env


TEXTS = [
    "Hello", "", "  spaced  \n", "multi\nline\n\ntext", "Привет 你好 😀", "it's \"quoted\" & <b>", "x" * 300, "a\\nb {{ x }} {% y %}",
    '<tool_call>\n{"name": "x"}\n</tool_call>', "<think>\nhm\n</think>\n\nanswer", "</think>after", "<think>open", "/no_think please",
    "\u00a0nbsp\u2003", "line\r\nend",
]  # fmt: skip
ARGUMENTS = [
    {},
    {"location": "Paris", "days": 1},
    {"a": None, "b": True, "c": 1.5, "d": [1, "x", {"y": 2}], "e": {"f": "g"}},
    {"q": "it's \"x\" <y>", "n": -3, "big": 12345678901234567890, "fl": 1e-7, "i": 1.0},
]
PARAMETERS = [
    {"type": "object", "properties": {}},
    {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "The city"},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "list": {"type": "array", "items": {"type": "object", "properties": {"z": {"type": ["number", "null"]}}}},
        },
        "required": ["location"],
    },
]
EXTRAS = {
    "enable_thinking": [True, False],
    "thinking": [True, False],
    "reasoning_effort": ["low", "high", "none"],
    "builtin_tools": [["wolfram_alpha", "code_interpreter"]],
    "documents": [[{"title": "t", "text": "x"}], []],
    "date_string": ["01 Jan 2025"],
    "tools_in_user_message": [True, False],
    "model_identity": ["You are X"],
}


class Conversations:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def text(self):
        return self.r.choice(TEXTS)

    def sometimes(self, p):
        return self.r.random() < p

    def content(self):
        kind = self.r.random()
        if kind < 0.8:
            return self.text()
        if kind < 0.9:
            return [{"type": "text", "text": self.text()} for _ in range(self.r.randint(1, 3))]
        if kind < 0.95:
            return [{"type": "text", "text": self.text()}, {"type": "image"}]
        return None

    def call(self):
        arguments = self.r.choice(ARGUMENTS)
        if self.sometimes(0.25):
            arguments = json.dumps(arguments)
        call = {
            "id": self.r.choice(["call00001", "abc123xyz", "call_long-id-123"]),
            "type": "function",
            "function": {"name": self.r.choice(["get_weather", "f"]), "arguments": arguments},
        }
        if self.sometimes(0.1):
            del call[self.r.choice(["id", "type"])]
        return call

    def tool(self, i):
        f = {"name": f"fn{i}", "description": self.text(), "parameters": self.r.choice(PARAMETERS)}
        if self.sometimes(0.2):
            del f[self.r.choice(["description", "parameters"])]
        return {"type": "function", "function": f} if self.sometimes(0.9) else f

    def ordered(self):
        if self.sometimes(0.6):
            yield {"role": "system", "content": self.text()}
        for _ in range(self.r.randint(1, 3)):
            yield {"role": "user", "content": self.content()}
            if self.sometimes(0.4):
                calls = [self.call() for _ in range(self.r.choice([1, 1, 2]))]
                yield {"role": "assistant", "content": self.r.choice(["", None, self.text()]), "tool_calls": calls}
                for c in calls:
                    yield {"role": "tool", "name": "get_weather", "tool_call_id": c.get("id", "x"), "content": self.text()}
            answer = {"role": "assistant", "content": self.text()}
            if self.sometimes(0.3):
                answer["reasoning_content"] = self.text()
            yield answer
        if self.sometimes(0.7):
            yield {"role": "user", "content": self.text()}

    def wild(self):
        for _ in range(self.r.randint(0, 5)):
            m = {"role": self.r.choice(["user", "assistant", "tool", "system", "developer", "function"]), "content": self.content()}
            if self.sometimes(0.3):
                m["tool_calls"] = self.r.choice([[self.call()], [], None])
            if self.sometimes(0.1):
                del m["content"]
            yield m

    def context(self):
        c = {"messages": list(self.ordered() if self.sometimes(0.6) else self.wild())}
        if self.sometimes(0.5):
            c["tools"] = [self.tool(i) for i in range(self.r.randint(0, 3))]
        for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
            if self.sometimes(0.95):
                c[name] = f"<{name}>"
        c["add_generation_prompt"] = self.sometimes(0.7)
        for name, values in EXTRAS.items():
            if self.sometimes(0.1):
                c[name] = self.r.choice(values)
        return c


def templates(folder):
    with tarfile.open(CASES) as tar:
        for m in tar.getmembers():
            if m.name.endswith(".jinja"):
                (folder / pathlib.Path(m.name).name).write_bytes(tar.extractfile(m).read())
    more = os.environ.get("INFER_TEMPLATES")
    return sorted(folder.glob("*.jinja")) + (sorted(pathlib.Path(more).glob("*.jinja")) if more else [])


def expected(template, context):
    try:
        return {"text": template.render(**context)}
    except Exception as e:  # whatever Python raises is the expectation
        return {"error": f"{type(e).__name__}: {e}"}


def test_random_conversations(tmp_path):
    make = Conversations(SEED)
    contexts = [make.context() for _ in range(CONTEXTS)]
    lines = "".join(json.dumps(c) + "\n" for c in contexts)
    env = reference()
    faults, renders = [], 0
    for path in templates(tmp_path):
        done = subprocess.run([INFER, "template", str(path), "--jsonl"], input=lines, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{path.name}: {done.stderr}"
        got = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(got) == len(contexts)
        template = env.from_string(path.read_bytes().decode())
        for i, (context, have) in enumerate(zip(contexts, got)):
            renders += 1
            want = expected(template, context)
            if have != want and not ("error" in want and have.get("error", "").endswith(want["error"])):
                faults.append(f"{path.name}, context {i}:\n  got {have}\n want {want}")
    assert renders >= 39 * CONTEXTS
    if faults:
        pytest.fail(f"{len(faults)} of {renders} differ:\n" + "\n".join(faults[:5]))
