"""The official openai package against `infer serve`.

INFER_URL names a running server; without it the built binary is started with
the embedded model. Nothing here depends on what the model says.
"""

import pathlib
import re

import openai
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESSAGES = [{"role": "user", "content": "Tell me a story about a fox."}]


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0, timeout=120) as c:
        yield c


@pytest.fixture(scope="module")
def model(client):
    return client.models.list().data[0].id


def chat(client, model, **more):
    return client.chat.completions.create(model=model, messages=MESSAGES, **{"max_tokens": 16, "temperature": 0, **more})


def test_models(client, model):
    assert client.models.retrieve(model).id == model
    with pytest.raises(openai.NotFoundError) as e:
        client.models.retrieve("no-such-model")
    assert e.value.code == "model_not_found"


def test_chat(client, model):
    answer = chat(client, model)
    assert answer.object == "chat.completion" and answer.model == model
    (choice,) = answer.choices
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.finish_reason in ("stop", "length")
    usage = answer.usage
    assert usage.prompt_tokens > 0 and 0 < usage.completion_tokens <= 16
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_stream_agrees_with_whole(client, model):
    whole = chat(client, model)
    chunks = list(chat(client, model, stream=True, stream_options={"include_usage": True}))
    assert len({c.id for c in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert all(c.usage is None for c in chunks[:-1])
    text = "".join(c.choices[0].delta.content or "" for c in chunks[:-1])
    assert text == whole.choices[0].message.content
    finish = [c.choices[0].finish_reason for c in chunks[:-1] if c.choices[0].finish_reason]
    assert finish == [whole.choices[0].finish_reason]


def test_stream_helper(client, model):
    # The helper raises on an answer cut by length: a stop string ends this one.
    whole = chat(client, model, max_tokens=32).choices[0].message.content
    word = whole.split()[3]
    with client.chat.completions.stream(
        model=model, messages=MESSAGES, max_tokens=32, temperature=0, stop=[word]
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert final.choices[0].message.content == whole[: whole.index(word)]


def test_n(client, model):
    answer = chat(client, model, n=3, temperature=1, seed=7)
    assert [c.index for c in answer.choices] == [0, 1, 2]
    streamed = ["", "", ""]
    for chunk in chat(client, model, n=3, temperature=1, seed=7, stream=True):
        for c in chunk.choices:
            streamed[c.index] += c.delta.content or ""
    assert streamed == [c.message.content for c in answer.choices]
    assert answer.usage.completion_tokens <= 3 * 16


def test_seed(client, model):
    def text(seed):
        return chat(client, model, temperature=1.5, seed=seed, max_tokens=32).choices[0].message.content

    assert text(1) == text(1)
    assert len({text(s) for s in range(1, 7)}) > 1


def test_logprobs(client, model):
    choice = chat(client, model, logprobs=True, top_logprobs=3).choices[0]
    entries = choice.logprobs.content
    assert b"".join(bytes(e.bytes) for e in entries).decode() == choice.message.content
    for e in entries:
        values = [t.logprob for t in e.top_logprobs]
        assert len(values) == 3 and values == sorted(values, reverse=True)
        assert e.logprob <= 0 and e.token == e.top_logprobs[0].token  # greedy
    streamed = []
    for chunk in chat(client, model, logprobs=True, top_logprobs=3, stream=True):
        if chunk.choices[0].logprobs:
            streamed += chunk.choices[0].logprobs.content
    assert [e.token for e in streamed] == [e.token for e in entries]


def test_stop(client, model):
    whole = chat(client, model, max_tokens=32).choices[0].message.content
    word = whole.split()[3]
    cut = chat(client, model, max_tokens=32, stop=[word])
    assert cut.choices[0].finish_reason == "stop"
    assert cut.choices[0].message.content == whole[: whole.index(word)]
    streamed = "".join(
        c.choices[0].delta.content or "" for c in chat(client, model, max_tokens=32, stop=[word], stream=True)
    )
    assert streamed == cut.choices[0].message.content


def test_max_tokens(client, model):
    answer = client.chat.completions.create(model=model, messages=MESSAGES, max_completion_tokens=3, temperature=0)
    assert answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens == 3


def test_completions(client, model):
    answer = client.completions.create(model=model, prompt=["Once upon", "The end"], max_tokens=4, temperature=0, n=2)
    assert [c.index for c in answer.choices] == [0, 1, 2, 3]
    assert answer.choices[0].text == answer.choices[1].text
    alone = client.completions.create(model=model, prompt="The end", max_tokens=4, temperature=0)
    assert alone.choices[0].text == answer.choices[2].text
    streamed = client.completions.create(model=model, prompt="The end", max_tokens=4, temperature=0, stream=True)
    assert "".join(c.choices[0].text for c in streamed) == alone.choices[0].text


def test_completions_echo(client, model):
    prompt = "Once upon a time"
    answer = client.completions.create(model=model, prompt=prompt, max_tokens=2, temperature=0, echo=True, logprobs=1)
    (choice,) = answer.choices
    assert choice.text.startswith(prompt)
    lp = choice.logprobs
    assert lp.token_logprobs[0] is None and all(x <= 0 for x in lp.token_logprobs[1:])
    assert len(lp.tokens) == len(lp.token_logprobs) == len(lp.top_logprobs) == len(lp.text_offset)
    assert len(lp.tokens) == answer.usage.total_tokens
    for token, offset in zip(lp.tokens, lp.text_offset):
        assert choice.text[offset : offset + len(token)] == token
    # Only the prompt: how evaluation programs score.
    score = client.completions.create(model=model, prompt=prompt, max_tokens=0, echo=True, logprobs=1)
    assert score.choices[0].text == prompt and score.usage.completion_tokens == 0
    assert score.choices[0].logprobs.token_logprobs == lp.token_logprobs[:-2]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"n": 0}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop": [""]}, "stop"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logit_bias": {"99999999": 1}}, "logit_bias"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"messages": [{"role": "banana", "content": "x"}]}, "messages.0.role"),
        ({"messages": []}, "messages"),
    ],
)
def test_bad_requests(client, model, change, param):
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(**{"model": model, "messages": MESSAGES, **change})
    assert e.value.param == param and e.value.type == "invalid_request_error"


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as e:
        client.chat.completions.create(model="no-such-model", messages=MESSAGES)
    assert e.value.code == "model_not_found" and e.value.param == "model"


def test_too_long(client, model):
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "word " * 100_000}])
    assert e.value.code == "context_length_exceeded"
    assert "maximum context length is" in str(e.value)


def test_closing_a_stream_early(client, model):
    stream = chat(client, model, max_tokens=512, stream=True)
    next(iter(stream))
    stream.close()
    assert chat(client, model, max_tokens=2).choices[0].message.content is not None
