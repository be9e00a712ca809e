"""The JSON that a Codex app-server writes: threads, turns, items, submissions, notifications.

Pure functions from the shared state to the wire's shapes, taken from the captures in tests/data/wire/codex.
What a shape leaves out, or has made up, is listed in `fakes/divergences.py`.
"""

import time
from typing import Any

from fakes.codex_store import CodexHome, Input, Item, Row, Thread, Turn
from fakes.codex_versions import CodexVersion

Json = dict[str, Any]

IDLE: Json = {"type": "idle"}
ACTIVE: Json = {"type": "active", "activeFlags": []}
NOT_LOADED: Json = {"type": "notLoaded"}
MODEL = "gpt-5.1-codex"
BUBBLEWRAP_MISSING = (
    "Codex could not find bubblewrap on PATH. Install bubblewrap with your OS package manager. See the sandbox"
    " prerequisites: https://developers.openai.com/codex/concepts/sandboxing#prerequisites. Codex will use the"
    " bundled bubblewrap in the meantime."
)
_OLD_THREAD_FIELDS = (
    "id forkedFromId preview ephemeral modelProvider createdAt updatedAt status path cwd cliVersion source"
    " agentNickname agentRole gitInfo name turns"
)
_OLD_START_FIELDS = (
    "thread model modelProvider serviceTier cwd approvalPolicy approvalsReviewer sandbox reasoningEffort"
)


def user_message(item_id: str, key: str | None, content: Input, now_ms: int) -> Json:
    return {
        "type": "userMessage",
        "id": item_id,
        "clientId": key,
        "content": content,
        "startedAtMs": now_ms,
        "completedAtMs": now_ms,
    }


def agent_message(item_id: str, text: str, now_ms: int) -> Json:
    return {
        "type": "agentMessage",
        "moderation": None,
        "id": f"msg_{item_id[-10:]}",
        "text": text,
        "phase": None,
        "memoryCitation": None,
        "delivery": None,
        "questions": None,
        "startedAtMs": now_ms,
        "completedAtMs": now_ms,
    }


def submission(row: Row) -> Json:
    return {
        "id": row.id,
        "input": row.input,
        "clientUserMessageId": row.client_id,
        "responsesapiClientMetadata": None,
    }


def listed_item(item: Item) -> Json:
    """An entry of thread/items/list."""
    times = {name: item.body[name] for name in ("startedAtMs", "completedAtMs")}
    return {"turnId": item.turn_id, "item": item.body, **times}


def new_turn(turn: Turn, *, started: bool = True) -> Json:
    """A turn in turn/started, and with `started` false in the answer to turn/start."""
    return {
        "id": turn.id,
        "rootTurnId": turn.id,
        "items": [],
        "itemsView": "notLoaded",
        "status": "inProgress",
        "error": None,
        "startedAt": turn.started_at_ms // 1000 if started else None,
        "completedAt": None,
        "durationMs": None,
    }


def listed_turn(turn: Turn, items: list[Item], view: str, *, loaded_here: bool) -> Json:
    """A turn in thread/turns/list and thread/read. `view`: notLoaded, summary or full.

    A server that doesn't own the thread shows a running turn as interrupted. The summary is the first
    message of the user and the last of the agent, so a steered message is in `full` only.
    """
    running_elsewhere = turn.status == "inProgress" and not loaded_here
    return {
        **ended_turn(turn),
        "items": _viewed([item.body for item in items if item.turn_id == turn.id], view),
        "itemsView": view,
        "status": "interrupted" if running_elsewhere else turn.status,
    }


def ended_turn(turn: Turn) -> Json:
    """A turn without its items."""
    done = turn.completed_at_ms
    return {
        **new_turn(turn),
        "status": turn.status,
        "completedAt": None if done is None else done // 1000,
        "durationMs": None if done is None else done - turn.started_at_ms,
    }


def _viewed(bodies: list[Json], view: str) -> list[Json]:
    if view == "notLoaded":
        return []
    if view == "full":
        return bodies
    first = [body for body in bodies if body["type"] == "userMessage"][:1]
    return first + [body for body in bodies if body["type"] == "agentMessage"][-1:]


def thread(home: CodexHome, of: Thread, version: CodexVersion, status: Json, originator: str) -> Json:
    """A thread with `turns` empty. `status` is what this server knows: notLoaded says it doesn't own it."""
    loaded = status != NOT_LOADED
    folder = "archived_sessions" if of.archived else time.strftime("sessions/%Y/%m/%d", _utc(of))
    started = time.strftime("%Y-%m-%dT%H-%M-%S", _utc(of))
    environment = {"environmentId": "local", "cwd": of.cwd, "runtimeWorkspaceRoots": [of.cwd]}
    shape = {
        "id": of.id,
        "environments": [environment] if loaded else None,
        "extra": None,
        "sessionId": of.id,
        "forkedFromId": None,
        "attachedToThreadId": None,
        "parentThreadId": of.parent_id,
        "preview": _preview(home.items(of.id)),
        "ephemeral": False,
        "section": None,
        "sectionEnteredAt": None,
        "projectId": None,
        "historyMode": of.history_mode,
        "modelProvider": "fake",
        "model": MODEL,
        "reasoningEffort": None,
        "createdAt": of.created_at_ms // 1000,
        "updatedAt": of.updated_at_ms // 1000,
        "recencyAt": of.updated_at_ms // 1000,
        "status": status,
        "path": f"{home.path}/{folder}/rollout-{started}-{of.id}.jsonl",
        "cwd": of.cwd,
        "cliVersion": version.number,
        "originator": originator,
        "source": of.source,
        "canAcceptDirectInput": True if loaded else None,
        "threadSource": None,
        "agentNickname": None,
        "agentRole": None,
        "gitInfo": None,
        "name": None,
        "daybreakEnabled": None,
        "turns": [],
    }
    return {name: shape[name] for name in _OLD_THREAD_FIELDS.split()} if version.is_early else shape


def started_thread(home: CodexHome, shape: Json, cwd: str, version: CodexVersion) -> Json:
    """The result of thread/start around the thread's own `shape`."""
    result: Json = {
        "thread": shape,
        "model": MODEL,
        "modelProvider": "fake",
        "serviceTier": None,
        "disabledPluginIds": [],
        "cwd": cwd,
        "runtimeWorkspaceRoots": [cwd],
        "instructionSources": [],
        "approvalPolicy": "on-request",
        "approvalsReviewer": "user",
        "sandbox": {
            "type": "workspaceWrite",
            "writableRoots": [],
            "networkAccess": False,
            "excludeTmpdirEnvVar": False,
            "excludeSlashTmp": False,
        },
        "activePermissionProfile": {"id": ":workspace", "extends": None},
        "reasoningEffort": None,
        "multiAgentMode": "explicitRequestOnly",
    }
    if not version.is_early:
        return result
    result["sandbox"] |= {
        "writableRoots": [f"{home.path}/memories"],
        "readOnlyAccess": {"type": "fullAccess"},
    }
    return {name: result[name] for name in _OLD_START_FIELDS.split()}


def resumed_thread(home: CodexHome, shape: Json, cwd: str, version: CodexVersion, cursors: Json) -> Json:
    """The result of thread/resume; `cursors` lead back from the newest turn and item."""
    settings = {"model": MODEL, "reasoning_effort": None, "developer_instructions": None}
    return {
        **started_thread(home, shape, cwd, version),
        "collaborationMode": {"mode": "default", "settings": settings},
        "initialTurnsPage": None,
        **cursors,
    }


def token_usage(thread_id: str, turn_id: str) -> Json:
    used = {
        "totalTokens": 15,
        "inputTokens": 10,
        "cachedInputTokens": 0,
        "cacheWriteInputTokens": 0,
        "outputTokens": 5,
        "reasoningOutputTokens": 0,
    }
    usage = {"total": used, "last": used, "modelContextWindow": 258400}
    return {"threadId": thread_id, "turnId": turn_id, "tokenUsage": usage}


RATE_LIMITS: Json = {
    "rateLimits": {
        "limitId": "codex",
        **dict.fromkeys(("limitName", "normalModelSlug", "primary", "secondary", "credits", "individualLimit")),
        **dict.fromkeys(("spendControlReached", "planType", "rateLimitReachedType")),
    }
}


def read_state(first_turn_id: str, revision: str) -> Json:
    return {"firstUnread": {"type": "turn", "turnId": first_turn_id}, "revision": revision}


def _preview(items: list[Item]) -> str:
    first = next((item.body for item in items if item.body["type"] == "userMessage"), None)
    return "" if first is None else "\n".join(str(part.get("text", "")) for part in first["content"])


def _utc(of: Thread) -> time.struct_time:
    return time.gmtime(of.created_at_ms / 1000)
