"""The Codex releases that the fake can play, and the methods each one names when it is asked another.

The lists were read off the real answers (`Invalid request: unknown variant ...`), in their order.
"""

from dataclasses import dataclass

_METHODS_0_171 = """
    initialize server/diagnostics userVerification/status userVerification/enroll
    userVerification/delete userVerification/verify userVerification/cancel thread/start thread/resume
    thread/fork thread/sample thread/sample/cancel thread/archive thread/delete thread/unsubscribe
    thread/increment_elicitation thread/decrement_elicitation thread/name/set thread/prediction/request
    thread/goal/set thread/goal/get thread/goal/clear thread/queue/add thread/queue/list
    thread/queue/update thread/queue/delete thread/queue/reorder thread/queue/start
    thread/metadata/update thread/attachment/add thread/attachment/list thread/attachmentOwner/list
    thread/attachment/remove thread/section/move thread/settings/update thread/memoryMode/set
    thread/memory/read memory/status memory/reset rollout/compress thread/unarchive thread/compact/start
    thread/shellCommand thread/approveGuardianDeniedAction thread/backgroundTerminals/clean
    thread/backgroundTerminals/list thread/backgroundTerminals/terminate thread/revert thread/list
    project/list project/read project/create project/import project/update project/move project/delete
    threadSection/list threadSection/create threadSection/update threadSection/delete thread/search
    thread/search/stream thread/search/cancel thread/search/stream/cancel thread/searchOccurrences
    thread/loaded/list thread/read thread/readState/update thread/turns/list thread/items/list
    thread/items/read thread/guardianReview thread/inject_items thread/prepareApprovedPlan skills/list
    skills/extraRoots/set hooks/list marketplace/add marketplace/remove marketplace/upgrade plugin/list
    plugin/search plugin/installed plugin/reconcile plugin/read plugin/skill/read plugin/share/save
    plugin/share/updateTargets plugin/share/list plugin/share/checkout plugin/share/delete app/read
    app/list app/installed fs/readFile fs/writeFile fs/createDirectory fs/getMetadata fs/readDirectory
    fs/remove fs/copy fs/watch fs/unwatch skills/config/write plugin/install plugin/uninstall turn/start
    turn/settings/update turn/steer turn/interrupt thread/realtime/start thread/realtime/appendAudio
    thread/realtime/appendText thread/realtime/appendSpeech thread/realtime/stop thread/timeline/list
    thread/realtime/list thread/realtime/listVoices review/start model/list account/gatewayOAuth/read
    account/gatewayOAuth/login account/gatewayOAuth/cancel modelProvider/list modelProvider/config/write
    modelProvider/default/set modelProvider/capabilities/read experimentalFeature/list
    permissionProfile/list experimentalFeature/enablement/set remoteControl/enable remoteControl/disable
    remoteControl/status/read remoteControl/pairing/start remoteControl/pairing/status
    remoteControl/client/list remoteControl/client/revoke collaborationMode/list mock/experimentalMethod
    environment/add environment/info environment/status mcpServer/oauth/login config/mcpServer/reload
    mcpServerStatus/list mcpServer/resource/read mcpServer/event/stream/start
    mcpServer/event/stream/stop mcpServer/tool/call windowsSandbox/setupStart windowsSandbox/readiness
    account/login/start account/bedrock/discover account/bedrock/setup account/gcp/setup
    account/bedrock/checkGovCloudRequirements account/login/cancel accountSession/list
    accountSession/switch account/logout account/securitySetup/read account/rateLimits/read
    account/rateLimitResetCredit/consume account/usage/read account/workspaceMessages/read
    account/sendAddCreditsNudgeEmail feedback/upload feedback/save command/exec command/exec/write
    command/exec/terminate command/exec/resize process/spawn process/writeStdin process/kill
    process/resizePty config/read externalAgentConfig/detect externalAgentConfig/import
    externalAgentConfig/import/recordHistory externalAgentConfig/import/readHistories config/value/write
    config/batchWrite configRequirements/read account/read getConversationSummary gitDiffToRemote
    getAuthStatus fuzzyFileSearch fuzzyFileSearch/sessionStart fuzzyFileSearch/sessionUpdate
    fuzzyFileSearch/sessionStop
"""

_METHODS_0_120 = """
    initialize thread/start thread/resume thread/fork thread/archive thread/unsubscribe
    thread/increment_elicitation thread/decrement_elicitation thread/name/set thread/metadata/update
    thread/unarchive thread/compact/start thread/shellCommand thread/backgroundTerminals/clean
    thread/rollback thread/list thread/loaded/list thread/read skills/list plugin/list plugin/read
    app/list fs/readFile fs/writeFile fs/createDirectory fs/getMetadata fs/readDirectory fs/remove
    fs/copy fs/watch fs/unwatch skills/config/write plugin/install plugin/uninstall turn/start
    turn/steer turn/interrupt thread/realtime/start thread/realtime/appendAudio
    thread/realtime/appendText thread/realtime/stop thread/realtime/listVoices review/start model/list
    experimentalFeature/list experimentalFeature/enablement/set collaborationMode/list
    mock/experimentalMethod mcpServer/oauth/login config/mcpServer/reload mcpServerStatus/list
    mcpServer/resource/read windowsSandbox/setupStart account/login/start account/login/cancel
    account/logout account/rateLimits/read feedback/upload command/exec command/exec/write
    command/exec/terminate command/exec/resize config/read externalAgentConfig/detect
    externalAgentConfig/import config/value/write config/batchWrite configRequirements/read account/read
    getConversationSummary gitDiffToRemote getAuthStatus fuzzyFileSearch fuzzyFileSearch/sessionStart
    fuzzyFileSearch/sessionUpdate fuzzyFileSearch/sessionStop
"""


@dataclass(frozen=True)
class CodexVersion:
    """`history_mode`: of the threads it starts unless told otherwise. `is_early`: before most of what is on
    the wire now, so a thread has few fields, notifications no emittedAtMs, and there is no remote control."""

    number: str
    methods: tuple[str, ...]
    history_mode: str = "paginated"
    is_early: bool = False


CURRENT = CodexVersion("0.171.0", tuple(_METHODS_0_171.split()))
EARLY = CodexVersion("0.120.0", tuple(_METHODS_0_120.split()), history_mode="legacy", is_early=True)
VERSIONS = {version.number: version for version in (CURRENT, EARLY)}
