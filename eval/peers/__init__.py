"""Speed of reading and decoding beside other engines, on the same model file and in one run.

Each engine is measured by a small program of its own (`own`, `openvino_genai`, `llama_cpp`), so
that a peer may live in another virtual environment and no engine's threads disturb another's.
"""
