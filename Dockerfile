# Fineprint on a CPU: one process with the page, the REST API and the engine.
# The model is fetched at the first start, into the volume, and not baked in.

FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/fineprint
# The dependencies first: they change less often than the code.
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY scripts/install_torch.sh scripts/install_torch.sh
RUN pip_install="/opt/fineprint/bin/python -m pip install --no-cache-dir --constraint constraints.txt" \
    && $pip_install --upgrade pip \
    && sh scripts/install_torch.sh /opt/fineprint/bin/python cpu \
    && $pip_install hatchling editables \
    && mkdir app backend eval kvstore retrieval ui \
    && $pip_install --no-build-isolation '.[postgres]'
COPY app app
COPY backend backend
COPY eval eval
COPY kvstore kvstore
COPY retrieval retrieval
COPY ui ui
RUN /opt/fineprint/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation --force-reinstall .

FROM python:3.11-slim
# libgomp1: torch's threads. The font draws Chinese pages whose files carry no font.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends fonts-wqy-zenhei libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home fineprint \
    && install --directory --owner fineprint --group fineprint /data /cache
COPY --from=build /opt/fineprint /opt/fineprint
ENV PATH=/opt/fineprint/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    FINEPRINT_DATA_DIR=/data \
    FINEPRINT_CACHE_DIR=/cache \
    FINEPRINT_LOG_JSON=true
USER fineprint
WORKDIR /home/fineprint
VOLUME ["/data", "/cache"]
EXPOSE 8000
# Ready means: database reachable, model loaded. The first start also fetches the model (90 MB).
HEALTHCHECK --interval=10s --timeout=5s --start-period=5m --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
CMD ["sh", "-c", "fineprint models pull && exec fineprint serve --host 0.0.0.0 --port 8000"]
