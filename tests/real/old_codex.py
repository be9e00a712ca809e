"""Join and send with a real Codex from before the queue API: `make test-old-codex`, which needs npm.

Not part of the suite (the name is no test's): it fetches that release, some 200 MB, into a temporary folder.
"""

import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from fakes.responses_api import ResponsesApi
from tests.real.channel_rig import JOIN, ChannelRig
from tests.real.codex_home import CodexHome, codex_home
from tests.real.codex_rig import app_server

VERSION = "0.147.0"
"""The last stable release without `thread/queue/add`."""

UNSUPPORTED = "queue API unsupported: this Codex has no thread queue; update it"
FETCH_S = 600
WAIT_S = 120

pytestmark = pytest.mark.timeout(FETCH_S + WAIT_S)


@pytest.fixture(scope="module")
def old_codex(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The native binary of VERSION."""
    folder = tmp_path_factory.mktemp("npm")
    shutil.copy(Path(__file__).with_name(".npmrc"), folder)
    (folder / "package.json").write_text(json.dumps({"private": True}))
    subprocess.run(["npm", "install", f"@openai/codex@{VERSION}"], cwd=folder, check=True, timeout=FETCH_S)
    [binary] = [path for path in folder.glob("node_modules/@openai/codex-*/vendor/*/*/codex") if path.is_file()]
    return binary


@pytest.fixture
async def codex(tmp_path: Path, old_codex: Path) -> AsyncIterator[CodexHome]:
    async with codex_home(tmp_path, old_codex) as home:
        yield home


async def test_join_and_send_say_that_the_queue_api_is_missing(codex: CodexHome, responses_api: ResponsesApi) -> None:
    rig = ChannelRig(codex, responses_api)
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner, rig.peer("tester") as tester:
            await owner.run_turn(await owner.start_thread(codex.project), JOIN)
            joined = await rig.join_answer()
            assert joined["waiter_detail"].startswith(UNSUPPORTED)
            sent = await tester.send("hello", "codex")
            assert sent["to"]["codex"]["waiter"].startswith(f"active; {UNSUPPORTED}")
            await rig.until_delivery(sent["id"], state="pending", detail=UNSUPPORTED)
    assert rig.shown("hello") == []
