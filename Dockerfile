# The query service.  It runs as a separate user on a read-only file system, and stores runs in /data.
#
#   docker build -t crystalperf .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#     -p 127.0.0.1:8090:8090 -v crystalperf:/data -v "$PWD/token:/run/secrets/token:ro" crystalperf

FROM python:3.11-slim AS built
WORKDIR /source
COPY . .
# A compiler, for the compiled loop; the final image does not contain it.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
RUN python -m venv /opt/crystalperf \
    && /opt/crystalperf/bin/pip install --no-cache-dir '.[service]'

FROM python:3.11-slim
LABEL org.opencontainers.image.title="CrystalPerf" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=built /opt/crystalperf /opt/crystalperf
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin crystalperf \
    && install -d -o crystalperf -g crystalperf -m 0700 /data
ENV PATH=/opt/crystalperf/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001
VOLUME /data
EXPOSE 8090
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8090/health', timeout=4)"]
ENTRYPOINT ["crystalperf", "serve", "--home", "/data", "--host", "0.0.0.0", "--token-file", "/run/secrets/token"]
