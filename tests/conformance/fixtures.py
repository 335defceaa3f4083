"""What the conformance suite expects to find on a server: tools, resources and prompts with
fixed names and texts. They exist in tests only."""

from __future__ import annotations

import base64
import json
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

PIXEL_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5Er"
    "kJggg=="
)
SILENCE_WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

IMAGE = ImageContent(type="image", data=PIXEL_PNG, mime_type="image/png")


def add_fixtures(server: MCPServer[Any]) -> None:
    """Adds everything that the suite asks for and that needs no request to the client."""
    _add_tools(server)
    _add_resources(server)
    _add_prompts(server)


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return EmbeddedResource(type="resource", resource=contents)


def _add_tools(server: MCPServer[Any]) -> None:
    @server.tool(description="Fixture: one text")
    def test_simple_text() -> str:
        return "This is a simple text response for testing."

    @server.tool(description="Fixture: one image")
    def test_image_content() -> list[ImageContent]:
        return [IMAGE]

    @server.tool(description="Fixture: one sound")
    def test_audio_content() -> list[AudioContent]:
        return [AudioContent(type="audio", data=SILENCE_WAV, mime_type="audio/wav")]

    @server.tool(description="Fixture: one embedded resource")
    def test_embedded_resource() -> list[EmbeddedResource]:
        return [_embedded("test://embedded-resource", "This is an embedded resource content.")]

    @server.tool(description="Fixture: three kinds of content")
    def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        data = json.dumps({"test": "data", "value": 123})
        return [
            TextContent(type="text", text="Multiple content types test:"),
            IMAGE,
            _embedded("test://mixed-content-resource", data, "application/json"),
        ]

    @server.tool(description="Fixture: three progress messages")
    async def test_tool_with_progress(ctx: Context[Any, Any]) -> str:
        for percent in (0, 50, 100):
            await ctx.report_progress(percent, 100, f"Completed step {percent} of 100")
            await anyio.sleep(0.05)
        return "done"

    @server.tool(description="Fixture: always fails")
    def test_error_handling() -> str:
        raise ToolError("This tool intentionally returns an error for testing")


def _add_resources(server: MCPServer[Any]) -> None:
    @server.resource("test://static-text", mime_type="text/plain", description="Fixture: text")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png", description="Fixture: bytes")
    def static_binary() -> bytes:
        return base64.b64decode(PIXEL_PNG)

    @server.resource(
        "test://template/{id}/data", mime_type="application/json", description="Fixture: template"
    )
    def template(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _add_prompts(server: MCPServer[Any]) -> None:
    @server.prompt(description="Fixture: no arguments")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="Fixture: two arguments")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="Fixture: an embedded resource")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
        text = "Embedded resource content for testing."
        return [
            UserMessage(_embedded(resourceUri, text)),
            UserMessage("Please process the embedded resource above."),
        ]

    @server.prompt(description="Fixture: an image")
    def test_prompt_with_image() -> list[UserMessage]:
        return [UserMessage(IMAGE), UserMessage("Please analyze the image above.")]
