"""The MCP server: tools, resources and prompts over guard, memory and strategies."""
