"""What flows through andon: messages, events, extractions, tickets, and the errors. Standard library and
pydantic only."""
