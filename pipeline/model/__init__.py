"""All that touches a model: the runtime, the prompt, the readers, and the thread that owns them."""
