"""The two kinds of app-server; a test that asks for `servers` runs against both."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from tests.contract.app_servers import AppServers, app_servers

WAIT_S = 60  # a real owner looks for foreign rows each 10 s, on a machine that does other things too


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
async def servers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AppServers]:
    """Server processes of an empty CODEX_HOME; everything has to be done within WAIT_S."""
    with anyio.fail_after(WAIT_S):
        async with app_servers(request.param, tmp_path) as each:
            yield each
