"""Who is calling: the agent whose token came with the connection."""

from __future__ import annotations

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier

from kernelarc.guard.errors import NotPermitted
from kernelarc.memory.archive import Archive
from kernelarc.memory.rows import Agent
from kernelarc.server.blocking import off_loop

SCOPE = "kernelarc"
"""The scope of every agent's token; there are no others."""

LOCAL_AGENT = "local"
"""Name of the caller on a connection without a token."""


class AgentTokens(TokenVerifier):
    """Bearer tokens of the archive's agents, known by their digests only."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    async def verify_token(self, token: str) -> AccessToken | None:
        """The identity behind ``token``; ``None`` (HTTP 401) for none or a revoked one."""
        agent = await off_loop(self._archive.runs.agent_by_token, token)
        if agent is None:
            return None
        return AccessToken(token=token, client_id=agent.name, scopes=[SCOPE], subject=agent.id)


async def caller(archive: Archive, local: Agent) -> Agent:
    """The agent that made the request which is being handled.

    Over HTTP it is the bearer token's; on a pipe ``local``, for whom the process was started.
    """
    token = get_access_token()
    if token is None or token.subject is None:
        return local
    return await off_loop(archive.runs.agent, token.subject)


def agent_of_pipe(archive: Archive, token: str | None) -> Agent:
    """The caller on standard input and output.

    Raises:
        NotPermitted: ``token`` is set and belongs to no agent, or to a revoked one.
    """
    if token is None:
        return archive.runs.ensure_agent(LOCAL_AGENT)
    agent = archive.runs.agent_by_token(token)
    if agent is None:
        raise NotPermitted(
            "KERNELARC_TOKEN is the token of no agent of this database; unset it to work as "
            f"{LOCAL_AGENT!r}, or use the token that the run printed."
        )
    return agent
