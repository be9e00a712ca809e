"""Fixtures of the tests with real binaries: each test has its own HOME, and its own fake model."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes.responses_api import ResponsesApi, serve_responses_api
from tests.real.codex_home import CodexHome, codex_home


@pytest.fixture
async def responses_api() -> AsyncIterator[ResponsesApi]:
    """The fake model endpoint of this test's Codex; set its `script`."""
    async with serve_responses_api() as api:
        yield api


@pytest.fixture
async def codex(tmp_path: Path, responses_api: ResponsesApi) -> AsyncIterator[CodexHome]:
    """A HOME for the real Codex, with the probe server registered as `probe`; `configure` it anew to change that."""
    async with codex_home(tmp_path) as home:
        home.configure(responses_api.url, {"probe": home.probe()})
        yield home


@pytest.fixture
def environment(codex: CodexHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product starts its app-servers from here: let them live in the HOME of the test."""
    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in codex.environment().items():
        monkeypatch.setenv(name, value)
