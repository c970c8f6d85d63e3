"""`infer pull` and huggingface_hub share one cache, in both directions."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from fake_hub import COMMIT, LARGE, REPO, FakeHub

ROOT = pathlib.Path(__file__).resolve().parents[2]
INFER = os.environ.get("INFER", str(ROOT / "bin" / "infer"))


@pytest.fixture
def hub():
    fake = FakeHub()
    yield fake
    fake.close()


@pytest.fixture
def env(hub, tmp_path):
    """The environment of both programs: nothing of the machine's own configuration."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": "hf_secret",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "NO_PROXY": "*",
    }


def pull(env, repo=REPO, **more):
    return subprocess.run([INFER, "pull", repo], env=env | more, capture_output=True, text=True, timeout=60)


def python(env, code, **more):
    """Runs huggingface_hub in a process of its own: it reads its settings when it is imported."""
    done = subprocess.run([sys.executable, "-c", code], env=env | more, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def snapshot(env):
    return pathlib.Path(env["HF_HOME"], "hub", "models--org--name", "snapshots", COMMIT)


def same(hub, folder):
    for name, data in hub.files.items():
        assert (folder / name).read_bytes() == data, name


def test_hub_reads_what_infer_wrote(hub, env):
    done = pull(env)
    assert done.returncode == 0, done.stderr
    same(hub, snapshot(env))
    assert all(t is None for t in hub.tokens), "the token went to the second server"
    hub.downloads()

    # Offline: the cache is enough, also to know what does not exist.
    ask = f"""
import huggingface_hub as h
from huggingface_hub.file_download import _CACHED_NO_EXIST
for name in {list(hub.files)!r}:
    print(h.hf_hub_download({REPO!r}, name))
print(h.snapshot_download({REPO!r}))
print(h.try_to_load_from_cache({REPO!r}, "chat_template.jinja") is _CACHED_NO_EXIST)
"""
    want = [str(snapshot(env) / name) for name in hub.files] + [str(snapshot(env)), "True"]
    assert python(env, ask, HF_HUB_OFFLINE="1").splitlines() == want
    assert hub.log == []

    # Online: nothing is downloaded again.
    assert python(env, ask).splitlines() == want
    assert hub.downloads() == []


def test_hub_finds_no_fault_in_the_cache(hub, env):
    assert pull(env).returncode == 0
    out = python(
        env,
        "import huggingface_hub as h; c = h.scan_cache_dir(); r = next(iter(c.repos)); v = next(iter(r.revisions));"
        "print(list(c.warnings), r.repo_id, r.repo_type, v.commit_hash, sorted(v.refs), len(v.files), v.size_on_disk)",
    )
    size = sum(len(d) for d in hub.files.values())
    assert out == f"[] {REPO} model {COMMIT} ['main'] {len(hub.files)} {size}"


def test_infer_uses_what_hub_wrote(hub, env):
    python(env, f"import huggingface_hub as h; h.snapshot_download({REPO!r})")
    hub.downloads()
    done = pull(env)
    assert done.returncode == 0, done.stderr
    assert hub.downloads() == []
    hub.close()
    done = pull(env, HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    same(hub, snapshot(env))


def test_infer_completes_what_hub_began(hub, env):
    python(env, f"import huggingface_hub as h; h.hf_hub_download({REPO!r}, 'config.json')")
    hub.downloads()
    done = pull(env, HF_HUB_OFFLINE="1")
    assert done.returncode == 1 and "HF_HUB_OFFLINE" in done.stderr
    assert pull(env).returncode == 0
    assert not any("config.json" in path and "generation" not in path for _, _, path, _ in hub.downloads())
    same(hub, snapshot(env))


def test_interrupted_pull_goes_on(hub, env):
    hub.pace = 0.05
    child = subprocess.Popen([INFER, "pull", REPO], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    part = pathlib.Path(env["HF_HOME"], "hub", "models--org--name", "blobs", hub.etag(LARGE) + ".incomplete")
    deadline = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size > 0):
        assert time.monotonic() < deadline and child.poll() is None, "no download began"
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=30) != 0
    child.stderr.close()
    had = part.stat().st_size
    assert 0 < had < len(hub.files[LARGE])
    hub.pace = 0
    hub.downloads()
    assert pull(env).returncode == 0
    assert [r for server, _, _, r in hub.downloads() if server == "cdn"] == [f"bytes={had}-"]
    same(hub, snapshot(env))
    assert not list(part.parent.glob("*.incomplete"))


def test_both_at_once(hub, env):
    hub.pace = 0.01
    code = f"import huggingface_hub as h; print(h.snapshot_download({REPO!r}))"
    ours = [subprocess.Popen([INFER, "pull", REPO], env=env, stdout=subprocess.DEVNULL) for _ in range(2)]
    theirs = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.DEVNULL)
    for child in [*ours, theirs]:
        assert child.wait(timeout=60) == 0
    same(hub, snapshot(env))
    large = [e for e in hub.downloads() if e[0] == "cdn"]
    assert len(large) == 1, "the lock did not hold"


def test_gated(hub, env):
    hub.gated = True
    done = pull(env)
    assert done.returncode == 1
    assert "gated" in done.stderr and hub.url + "/" + REPO in done.stderr
    assert "hf_secret" not in done.stderr and "Traceback" not in done.stderr and "goroutine" not in done.stderr
