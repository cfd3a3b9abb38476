"""An engine that lives elsewhere: any OpenAI-compatible server (vLLM, SGLang, llama.cpp) writes.

Nothing is read ahead and there are no KV pages here: the evidence goes to the server as text, the
document first and the question last, so that the server's own prefix cache can help.
"""

from app.remote.engine import RemoteEngine

__all__ = ["RemoteEngine"]
